// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/support/folder.hpp"
#include "tests/support/test.hpp"
#include "tools/support/failure.hpp"
#include "tools/support/interrupts.hpp"
#include "tools/support/library.hpp"
#include "tools/support/machine.hpp"
#include "tools/support/output_file.hpp"
#include "tools/support/shell.hpp"

namespace freehold::cli {
namespace {
namespace fs = std::filesystem;

class Support : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& content) { return own_.file(name, content); }
  static int code_of(auto&& action) {
    try {
      action();
    } catch (const Failure& failure) {
      return failure.exit_code();
    }
    return 0;
  }

  const test::Folder own_;
  const fs::path folder_ = own_.path();
};

TEST_F(Support, OutputFile_NewFile_HasTheTextAndTheUsualMode) {
  const ::mode_t mask = ::umask(0027);
  write_file(folder_ / "new", "text");
  ::umask(mask);
  EXPECT_EQ(test::content_of(folder_ / "new"), "text");
  EXPECT_EQ(fs::status(folder_ / "new").permissions(), fs::perms(0640));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(Support, OutputFile_FolderThatIsMissing_RefusedBeforeAndAtTheEnd) {
  const std::string path = folder_ / "missing" / "file";
  EXPECT_EQ(code_of([&] { check_writable(path); }), kExitRefused);
  EXPECT_EQ(code_of([&] { write_file(path, "text"); }), kExitRefused);
  EXPECT_EQ(code_of([&] { check_writable(""); }), kExitRefused);
  EXPECT_EQ(code_of([&] { check_writable(folder_); }), kExitRefused);
  EXPECT_EQ(code_of([&] { write_file(folder_, "text"); }), kExitRefused);
}

TEST_F(Support, OutputFile_OwnLinkInAFolderOfAGroup_IsFollowedAndTheModeKept) {
  const std::string target = file("target", "former");
  fs::permissions(target, fs::perms(0600));
  fs::permissions(folder_, fs::perms::group_write, fs::perm_options::add);
  fs::create_symlink("target", folder_ / "link");
  check_writable(folder_ / "link");
  write_file(folder_ / "link", "text");
  EXPECT_EQ(test::content_of(target), "text");
  EXPECT_EQ(fs::status(target).permissions(), fs::perms(0600));
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(own_.names(), (std::vector<std::string>{"link", "target"}));
}

TEST_F(Support, OutputFile_OpenDescriptor_IsWrittenThroughAndNeverReplaced) {
  const std::string target = file("target", "former\n");
  const auto inode = [&] {
    struct stat info{};
    return ::stat(target.c_str(), &info) == 0 ? info.st_ino : 0;
  };
  const auto before = inode();
  const FileDescriptor open(::open(target.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  for (const std::string name : {"/dev/fd/", "/proc/self/fd/"}) {
    check_writable(name + std::to_string(open.get()));
    write_file(name + std::to_string(open.get()), "text\n");
  }
  fs::create_symlink("/proc/self/fd/" + std::to_string(open.get()), folder_ / "link");
  write_file(folder_ / "link", "end\n");
  EXPECT_EQ(test::content_of(target), "former\ntext\ntext\nend\n");
  EXPECT_EQ(inode(), before);
  EXPECT_EQ(code_of([&] { check_writable("/dev/fd/9999"); }), kExitRefused);
  const FileDescriptor read_only(::open(target.c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(code_of([&] { check_writable("/dev/fd/" + std::to_string(read_only.get())); }), kExitRefused);
}

// Another user may have planted files in a folder to which all may write.
TEST_F(Support, OutputFile_LinkInAFolderOfAll_RefusedAndNothingIsWritten) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a link away";
  const std::string victim = file("victim", "former");
  const fs::path shared = folder_ / "shared";
  fs::create_directory(shared);
  fs::permissions(shared, fs::perms::all | fs::perms::sticky_bit);
  fs::create_symlink(victim, shared / "link");
  fs::create_symlink(folder_ / "missing", shared / "dangling");
  fs::create_hard_link(victim, shared / "name");
  for (const char* name : {"link", "dangling"}) ASSERT_EQ(::lchown((shared / name).c_str(), 12345, 12345), 0);
  for (const char* name : {"link", "dangling"}) {
    EXPECT_EQ(code_of([&] { check_writable(shared / name); }), kExitRefused) << name;
    EXPECT_EQ(code_of([&] { write_file(shared / name, "text"); }), kExitRefused) << name;
    EXPECT_EQ(code_of([&] { (void)open_log(shared / name); }), kExitRefused) << name;
  }
  EXPECT_EQ(code_of([&] { (void)open_log(shared / "name"); }), kExitRefused);
  write_file(shared / "name", "text");
  EXPECT_EQ(test::content_of(shared / "name"), "text");
  EXPECT_EQ(test::content_of(victim), "former");
  EXPECT_FALSE(fs::exists(folder_ / "missing"));
  EXPECT_EQ(std::distance(fs::directory_iterator(shared), {}), 3);
}

TEST_F(Support, OutputFile_OfAnotherUserInAFolderOfAll_ItsRightsAreNotKept) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  const fs::path shared = folder_ / "shared";
  fs::create_directory(shared);
  fs::permissions(shared, fs::perms::all);
  const std::string planted = file("shared/planted", "former");
  ASSERT_EQ(::chown(planted.c_str(), 12345, 12345), 0);
  fs::permissions(planted, fs::perms::all | fs::perms::set_uid);
  const std::string pipe = shared / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0666), 0);
  ASSERT_EQ(::chown(pipe.c_str(), 12345, 12345), 0);
  write_file(planted, "text");
  EXPECT_EQ(test::content_of(planted), "text");
  EXPECT_EQ(fs::status(planted).permissions() & (fs::perms::set_uid | fs::perms::others_write), fs::perms::none);
  EXPECT_EQ(code_of([&] { check_writable(pipe); }), kExitRefused);
  EXPECT_EQ(code_of([&] { write_file(pipe, "text"); }), kExitRefused);
}

TEST_F(Support, OutputFile_OfAnotherUserInAStickyFolder_RefusedBefore) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  fs::permissions(folder_, fs::perms::all | fs::perms::sticky_bit);
  ASSERT_EQ(::chown(file("theirs", "former").c_str(), 12345, 12345), 0);
  const auto as_another = [&] {
    const bool became = ::setuid(23456) == 0;
    ::_exit(!became ? 1 : code_of([&] { check_writable(folder_ / "theirs"); }));
  };
  EXPECT_EXIT(as_another(), testing::ExitedWithCode(kExitRefused), "");
}

// The results that are written behind it take no harm from what came while it lived.
TEST_F(Support, Interrupts_SecondSignalLongBeforeItsEnd_DoesNotKill) {
  const auto twice = [] {
    {
      Interrupts interrupts;
      ::raise(SIGINT);
      if (interrupts.arrived() != SIGINT) ::_exit(1);
      ::raise(SIGINT);
      ::usleep(1'100'000);
    }
    ::_exit(0);
  };
  EXPECT_EXIT(twice(), testing::ExitedWithCode(0), "");
}

TEST_F(Support, PreloadValue_Existing_StaysBehind) {
  EXPECT_EQ(preload_value("/l.so", nullptr), "/l.so");
  EXPECT_EQ(preload_value("/l.so", ""), "/l.so");
  EXPECT_EQ(preload_value("/l.so", "/a.so /b.so"), "/l.so:/a.so /b.so");
}

TEST_F(Support, FreeholdCandidates_CommandInBin_LibrariesOfThePrefix) {
  const auto candidates = freehold_candidates("/opt/x/bin");
  EXPECT_TRUE(candidates.front().string().starts_with("/opt/x/libfreehold.so.")) << candidates.front();  // the build folder
  EXPECT_NE(std::ranges::find(candidates, "/opt/x/lib/libfreehold.so"), candidates.end());
}

TEST_F(Support, FindAllocator_UnknownOrMissing_Refused) {
  EXPECT_EQ(code_of([] { (void)find_allocator("nomalloc"); }), kExitRefused);
  EXPECT_EQ(code_of([] { (void)find_allocator(""); }), kExitRefused);
  EXPECT_EQ(code_of([] { (void)find_allocator("/no/such/lib.so"); }), kExitRefused);
  EXPECT_EQ(code_of([&] { (void)find_allocator("x=" + folder_.string()); }), kExitRefused);
  const std::string spaced = file("a b.so", "");
  EXPECT_EQ(code_of([&] { (void)find_allocator(spaced); }), kExitRefused);
}

TEST_F(Support, CgroupCpus_NestedGroups_SmallestQuotaCounts) {
  file("cpu.max", "max 100000\n");
  file("a/cpu.max", "150000 100000\n");
  file("a/b/cpu.max", "400000 100000\n");
  EXPECT_EQ(cgroup_cpus(folder_, "/a/b"), 1.5);
  EXPECT_EQ(cgroup_cpus(folder_, "/a"), 1.5);
  EXPECT_EQ(cgroup_cpus(folder_, "/"), std::nullopt);
  EXPECT_EQ(cgroup_cpus(folder_ / "a" / "b", "/"), 4.0);
  EXPECT_EQ(cgroup_cpus(folder_, "/not/there"), std::nullopt);
}

// The shell itself is asked.
TEST_F(Support, ShellWords_AShellReadsThem_AreTheSame) {
  const std::vector<std::string> words{"./prog", "--size=3",  "",  "two words", "it's",  "$HOME `date` \\ \"x\"",
                                       "a\nb",   "</script>", "*", "~",         "-t{n}", "ü"};
  const std::string out = folder_ / "words";
  ASSERT_EQ(std::system(("printf '%s\\0' " + shell_words(words) + " > " + shell_word(out)).c_str()), 0);
  std::string expected;
  for (const std::string& word : words) expected += word + '\0';
  EXPECT_EQ(test::content_of(out), expected);
  EXPECT_EQ(shell_words(std::vector<std::string>{"./prog", "--size=3"}), "./prog --size=3");
}

TEST_F(Support, SplitWords_AsAShellReadsThem) {
  for (const std::string text :
       {"-t {n}", "  a\tb  c ", "'two words' \"and 'more'\"", "a\\ b\\'c", "\"q\\\"x\\y\" ''", "x'y'\"z\""}) {
    const auto words = split_words(text);
    ASSERT_TRUE(words) << text;
    const std::string out = folder_ / "split";
    ASSERT_EQ(std::system(("printf '%s\\0' " + text + " > " + shell_word(out)).c_str()), 0);
    std::string ours;
    for (const std::string& word : *words) ours += word + '\0';
    EXPECT_EQ(ours, test::content_of(out)) << text;
  }
  EXPECT_EQ(split_words("a\nb").value().size(), 2u);
  EXPECT_EQ(split_words("").value().size(), 0u);
  EXPECT_FALSE(split_words("'never closed"));
  EXPECT_FALSE(split_words("x \"never closed"));
}

}  // namespace
}  // namespace freehold::cli
