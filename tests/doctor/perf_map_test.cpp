// SPDX-License-Identifier: MIT
// Names of code made at run time: the lines of real interpreters, files that are damaged, and files that others put there.
#include "tools/doctor/facts/perf_map.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

#include "tests/support/folder.hpp"
#include "tools/doctor/facts/call_sites.hpp"

namespace freehold::doctor {
namespace {
namespace fs = std::filesystem;

class PerfMapFile : public testing::Test {
 protected:
  fs::path file(const std::string& text, const std::string& name = "perf-1.map") { return own_.file(name, text); }
  static PerfMap read(const fs::path& file) { return PerfMap::of_file(file, ::geteuid()); }
  static std::string name_at(const PerfMap& map, std::uint64_t address) {
    const auto frame = map.frame(address);
    return frame ? frame->function : "";
  }
  const test::Folder own_;
  const fs::path folder_ = own_.path();
};

TEST_F(PerfMapFile, Pieces_FromTheirFirstByteToTheirLast) {
  const PerfMap map = read(file("7f0000001000 40 first\n7f0000002000 1 one\n"));
  EXPECT_EQ(map.size(), 2U);
  EXPECT_EQ(name_at(map, 0x7f0000000fff), "");
  EXPECT_EQ(name_at(map, 0x7f0000001000), "first");
  EXPECT_EQ(name_at(map, 0x7f000000103f), "first");
  EXPECT_EQ(name_at(map, 0x7f0000001040), "");
  EXPECT_EQ(name_at(map, 0x7f0000002000), "one");
  EXPECT_EQ(name_at(map, 0), "");
  EXPECT_EQ(name_at(map, ~std::uint64_t{0}), "");
}

TEST_F(PerfMapFile, MemoryUsedAgain_TheLaterLineIsRight) {
  const PerfMap map =
      read(file("1000 100 whole\n1040 20 inside\n"                 // cuts off the end of the first
                "3000 10 a\n3010 10 b\n3020 10 c\n2ff0 28 over\n"  // a and b are gone, c has its whole
                "5000 10 old\n5000 10 new\n"));
  EXPECT_EQ(name_at(map, 0x103f), "whole");
  EXPECT_EQ(name_at(map, 0x1040), "inside");
  EXPECT_EQ(name_at(map, 0x1060), "");
  EXPECT_EQ(name_at(map, 0x2ff0), "over");
  EXPECT_EQ(name_at(map, 0x3017), "over");
  EXPECT_EQ(name_at(map, 0x3018), "");
  EXPECT_EQ(name_at(map, 0x3020), "c");
  EXPECT_EQ(name_at(map, 0x5008), "new");
}

TEST_F(PerfMapFile, LinesOfInterpreters_FunctionsFilesAndWhoseTheyAre) {
  const struct {
    const char* name;
    Frame frame;
  } known[] = {
      {"py::build:/home/me/work.py", {"build", "", 0, "/home/me/work.py", false, true}},
      {"py::Store.fill:/home/me/work.py", {"Store.fill", "", 0, "/home/me/work.py", false, true}},
      {"py::_find_and_load:<frozen importlib._bootstrap>",
       {"_find_and_load", "", 0, "<frozen importlib._bootstrap>", false, false}},
      {"py::bare", {"bare", "", 0, "", false, true}},
      {"JS:*build /home/me/work.js:2:15", {"build", "/home/me/work.js", 2, "", false, true}},
      {"JS:~ /home/me/my work.js:1:1", {"(anonymous)", "/home/me/my work.js", 1, "", false, true}},
      {"LazyCompile:~go file:///w.mjs:12:3", {"go", "file:///w.mjs", 12, "", false, true}},
      {"JS:~Module.load node:internal/modules/cjs/loader:1257:33",
       {"Module.load", "node:internal/modules/cjs/loader", 1257, "", false, false}},
      {"JS:^f", {"f", "", 0, "", false, true}},
      {"Builtin:JSEntry", {"Builtin:JSEntry", "", 0, "", false, false}},
      {"void Work.main(java.lang.String[])", {"void Work.main(java.lang.String[])", "", 0, "", false, true}},
      {"java.nio.ByteBuffer java.nio.ByteBuffer.allocateDirect(int)",
       {"java.nio.ByteBuffer java.nio.ByteBuffer.allocateDirect(int)", "", 0, "", false, false}},
      {"Interpreter", {"Interpreter", "", 0, "", false, false}},
      {"StubRoutines (1)", {"StubRoutines (1)", "", 0, "", false, false}},
      {"new_instance Runtime1 stub", {"new_instance Runtime1 stub", "", 0, "", false, false}},
      {"my_function", {"my_function", "", 0, "", false, true}},
      {"java", {"java", "", 0, "", false, true}},
  };
  for (const auto& [name, wanted] : known) {
    const Frame frame = frame_of_runtime_name(name);
    EXPECT_TRUE(is_same_site(frame, wanted)) << name << ": " << frame.text();
    EXPECT_EQ(frame.is_runtime_code, wanted.is_runtime_code) << name;
  }
}

TEST_F(PerfMapFile, LineLongerThanAnyBuffer_IsLeftOutAndTheNextIsRead) {
  const PerfMap map = read(file("1000 10 " + std::string(1 << 20, 'x') + "\n2000 10 next\n"));
  EXPECT_EQ(map.size(), 1U);
  EXPECT_EQ(name_at(map, 0x2000), "next");
}

// A file is not believed if it cannot be opened without waiting, leads elsewhere, or is another user's.
TEST_F(PerfMapFile, NoRegularFileOfThisUser_IsNotBelieved) {
  EXPECT_EQ(read(folder_ / "none").size(), 0U);
  EXPECT_EQ(read(folder_).size(), 0U);
  EXPECT_EQ(read("/dev/zero").size(), 0U);
  ASSERT_EQ(::mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  EXPECT_EQ(read(folder_ / "fifo").size(), 0U) << "and it must not wait for a writer";
  const fs::path real = file("1000 10 x\n");
  fs::create_symlink(real, folder_ / "link");
  EXPECT_EQ(read(folder_ / "link").size(), 0U);
  EXPECT_EQ(read(real).size(), 1U);
}

TEST_F(PerfMapFile, OfAnotherUser_IsBelievedForThatUsersProcessAlone) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  constexpr uid_t kOther = 12'345, kThird = 12'346;
  const fs::path theirs = file("1000 10 x\n");
  ASSERT_EQ(::chown(theirs.c_str(), kOther, 0), 0);
  EXPECT_EQ(PerfMap::of_file(theirs, 0).size(), 0U);
  EXPECT_EQ(PerfMap::of_file(theirs, kThird).size(), 0U);
  EXPECT_EQ(PerfMap::of_file(theirs, kOther).size(), 1U);
}

// A site is the program's own function, though an interpreter's frames lie between it and malloc.
TEST(SiteOfAStack, InterpretedFunction_BeforeTheInterpreters) {
  const Frame c{"PyObject_Call", "", 0, "/usr/bin/python3", false, false};
  const Frame library{"malloc", "", 0, "/lib/libc.so.6", false, false};
  const Frame python = frame_of_runtime_name("py::build:/work.py");
  const Frame builtin = frame_of_runtime_name("Builtin:JSEntry");
  EXPECT_EQ(site_among(std::vector{library, c, python, c, python}), 2U);
  EXPECT_EQ(site_among(std::vector{library, c, builtin, c}), 1U);
  EXPECT_EQ(site_among(std::vector{library, c}), 1U);
}

// ---- where a process leaves it
// --------------------------------------------------------------------------------------------

// A map in the process's own folder counts, too: a container has another /tmp.
TEST(PerfMapOfProcess, OfARunningProcess_IsFound) {
  const std::string name = "/tmp/perf-" + std::to_string(::getpid()) + ".map";
  std::ofstream(name) << "1000 10 here\n";
  const PerfMap map = PerfMap::of_process(static_cast<std::uint64_t>(::getpid()));
  fs::remove(name);
  EXPECT_EQ(map.size(), 1U);
  EXPECT_EQ(PerfMap::of_process(4'194'305).size(), 0U) << "no number of a process";
}

}  // namespace
}  // namespace freehold::doctor
