// SPDX-License-Identifier: MIT
// Allocators that programs bring along, found in real files: those that are linked here, and those of runtimes that happen
// to be installed.
#include "tools/doctor/facts/own_malloc.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "tests/support/folder.hpp"
#include "tools/doctor/run/call_counter.hpp"
#include "tools/live/memory_map.hpp"
#include "tools/live/process.hpp"

namespace freehold::doctor {
namespace {
namespace fs = std::filesystem;

const OwnMalloc* find(const std::vector<OwnMalloc>& all, const std::string& name) {
  const auto found = std::ranges::find(all, name, &OwnMalloc::name);
  return found == all.end() ? nullptr : &*found;
}

TEST(OwnMalloc, PlainProgram_BringsNone) {
  EXPECT_TRUE(own_mallocs({fs::read_symlink("/proc/self/exe")}).empty());
  EXPECT_TRUE(own_mallocs({}).empty());
  EXPECT_TRUE(own_mallocs({"/no/such/file", "/", "/dev/null", "/proc/self/maps"}).empty());
}

// Each of these programs has the allocator in its own file, where no library comes before it.
TEST(OwnMalloc, LinkedStatically_IsFoundAndNotReached) {
  const std::vector<std::pair<std::string, std::string>> table{
      {FREEHOLD_WITH_JEMALLOC, "jemalloc"}, {FREEHOLD_WITH_TCMALLOC, "tcmalloc"}, {FREEHOLD_WITH_PREFIX, "mimalloc"}};
  for (const auto& [file, name] : table) {
    const auto all = own_mallocs({file});
    const OwnMalloc* const own = find(all, name);
    ASSERT_NE(own, nullptr) << file;
    EXPECT_EQ(all.size(), 1u) << file;
    EXPECT_FALSE(own->is_reached);
    EXPECT_FALSE(own->functions.empty());
    EXPECT_FALSE(own->use_malloc);
  }
}

TEST(OwnMalloc, LinkedStaticallyAndStripped_IsFound) {
  const std::string file = FREEHOLD_WITH_JEMALLOC;
  const test::Folder folder;
  fs::copy_file(file, folder / "stripped");
  ASSERT_EQ(std::system(("strip " + folder / "stripped").c_str()), 0);
  EXPECT_NE(find(own_mallocs({folder / "stripped"}), "jemalloc"), nullptr);
}

TEST(OwnMalloc, SharedLibrary_IsReached) {
  int seen = 0;
  for (const auto& [file, name] : std::vector<std::pair<std::string, std::string>>{
           {"/usr/lib/x86_64-linux-gnu/libjemalloc.so.2", "jemalloc"},
           {"/usr/lib/x86_64-linux-gnu/libmimalloc.so.2", "mimalloc"},
           {"/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4", "tcmalloc"}}) {
    if (!fs::exists(file)) continue;
    ++seen;
    const auto all = own_mallocs({file});
    ASSERT_NE(find(all, name), nullptr) << file;
    EXPECT_TRUE(find(all, name)->is_reached) << file;
  }
  if (seen == 0) GTEST_SKIP() << "no allocator is installed";
}

// Python 3.13 and later have mimalloc built in, but use it only where threads are free, or if PYTHONMALLOC says so.
TEST(OwnMalloc, PythonWithTheLock_MimallocIsNotItsAllocator) {
  const auto all = own_mallocs({FREEHOLD_PYTHON_NAMES});
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all.front().name, "CPython's allocator");
  EXPECT_TRUE(all.front().use_malloc);
}

// It does not start with PYTHONMALLOC=malloc.
TEST(OwnMalloc, FreeThreadedPython_HasNoSwitch) {
  const auto all = own_mallocs({FREEHOLD_FREE_PYTHON_NAMES});
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all.front().name, "free-threaded CPython's mimalloc");
  EXPECT_FALSE(all.front().use_malloc);
  EXPECT_FALSE(all.front().is_reached);
  EXPECT_EQ(all.front().functions.size(), 1u) << "what others call passes through it, too";
}

TEST(OwnMalloc, LibC_HasTheFunctionsOfMalloc) {
  const std::set<std::string> files = live::files_of(live::code_mappings(live::maps_of(::getpid())));
  EXPECT_GE(malloc_functions(files).size(), 5u);  // some have one address
}

// The program allocates a known number of times in two threads, then waits to be ended.
TEST(CallCounter, KnownCalls_AreCounted) {
  const std::string file = FREEHOLD_WITH_PREFIX;
  const auto own = own_mallocs({file});
  ASSERT_EQ(own.size(), 1u);
  int go[2];
  ASSERT_EQ(::pipe(go), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(go[0], STDIN_FILENO);
    ::close(go[1]);
    ::execl(file.c_str(), file.c_str(), "wait", nullptr);
    ::_exit(127);
  }
  ::close(go[0]);
  // Its exec is over once it has the file mapped.
  for (int i = 0; i < 2000 && live::maps_of(child).find(file) == std::string::npos; ++i) ::usleep(1000);
  CallCounter counter({own.front().functions, {}});
  counter.look({child});
  EXPECT_EQ(::write(go[1], "x", 1), 1);
  ::close(go[1]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  if (!counter.why().empty()) GTEST_SKIP() << counter.why();
  EXPECT_EQ(counter.calls(), (std::vector<std::uint64_t>{1000, 0}));
}

TEST(CallCounter, ProcessThatHasEnded_NothingCounted) {
  CallCounter counter({malloc_functions({"/lib/x86_64-linux-gnu/libc.so.6"})});
  counter.look({999'999'999});
  EXPECT_EQ(counter.calls(), std::vector<std::uint64_t>{0});
  EXPECT_EQ(counter.why(), "");
}

}  // namespace
}  // namespace freehold::doctor
