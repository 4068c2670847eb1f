// SPDX-License-Identifier: MIT
// Processes that the kernel does not let everybody look at: what the commands say that look at one. Of one that forbids core
// dumps only root sees the memory, on every kernel; kernel.yama.ptrace_scope is for stats_test.cpp and
// live_process_test.cpp.
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <filesystem>

#include "tests/cli/command.hpp"
#include "tests/cli/live_program.hpp"

namespace freehold::tests {
namespace {
namespace fs = std::filesystem;

constexpr uid_t kUser = 65'534;

// Root's tests become a user for it; others are one.
void be_user() {
  if (::geteuid() == 0 && (::setgid(kUser) != 0 || ::setuid(kUser) != 0)) ::_exit(98);
}

// What a user can reach: the build may lie in a folder of root's.
class OpenFolder {
 public:
  OpenFolder() { fs::permissions(fs::path(folder_ / "x").parent_path(), fs::perms::all); }
  [[nodiscard]] std::string copy(const std::string& file) const {
    const std::string to = folder_ / fs::path(file).filename().string();
    fs::copy_file(file, to, fs::copy_options::skip_existing);
    return to;
  }

 private:
  Folder folder_;
};

void expect_refused(const Ended& ended, const std::string& why, const std::string& way_out) {
  EXPECT_TRUE(ended.exited_with(2)) << ended.status << ended.out << ended.err;
  EXPECT_EQ(lines_of(ended.err), 1) << ended.err;
  EXPECT_NE(ended.err.find(why), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find(way_out), std::string::npos) << ended.err;
}

std::vector<std::vector<std::string>> commands_for(pid_t pid) {
  const std::string process = std::to_string(pid);
  return {{"stats", process}, {"heap", "snapshot", process}, {"doctor", "attach", process, "--for", "200ms"}};
}

Ended ask(const std::string& command, std::vector<std::string> words, const std::function<void()>& prepare) {
  words.insert(words.begin(), command);
  return Process(words, {}, prepare).wait();
}

TEST(HiddenProcess, OfTheSameUser_EachCommandSaysThatItHides) {
  const OpenFolder folder;
  const std::string command = folder.copy(command_path());
  Process subject({folder.copy(built("hides"))}, {}, [] {
    be_user();
    keep_input_open();
  });
  ASSERT_TRUE(subject.wait_for_output("ready"));
  for (const auto& words : commands_for(subject.pid())) {
    SCOPED_TRACE(words.front());
    const Ended ended = ask(command, words, be_user);
    expect_refused(ended, "does not let itself be looked at: it forbids core dumps", "as root");
    EXPECT_EQ(ended.err.find("belongs to"), std::string::npos) << ended.err;
  }
}

// In a container root is nobody's root.
TEST(HiddenProcess, RootWithoutTheRight_EachCommandNamesTheRight) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  const OpenFolder folder;
  Process subject({folder.copy(built("hides"))}, {}, [] {
    be_user();
    keep_input_open();
  });
  ASSERT_TRUE(subject.wait_for_output("ready"));
  const auto drop = [](std::initializer_list<int> rights) {
    for (const int right : rights)
      if (::prctl(PR_CAPBSET_DROP, right, 0, 0, 0) != 0) ::_exit(98);
  };
  for (const bool sees_mappings : {false, true}) {  // as CAP_PERFMON shows them since Linux 6.16, and no more
    for (const auto& words : commands_for(subject.pid())) {
      if (sees_mappings && words.front() == "doctor") continue;  // which needs no more
      SCOPED_TRACE(words.front());
      const Ended ended = ask(command_path(), words, [&] {
        drop({CAP_SYS_PTRACE});
        if (!sees_mappings) drop({CAP_PERFMON, CAP_SYS_ADMIN});
      });
      if (ended.exited_with(98)) GTEST_SKIP() << "rights cannot be dropped here";
      expect_refused(ended, "belongs to user 65534", "CAP_SYS_PTRACE");
    }
  }
}

}  // namespace
}  // namespace freehold::tests
