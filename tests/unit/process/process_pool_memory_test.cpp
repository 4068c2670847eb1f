// SPDX-License-Identifier: MIT
// Memory of a pool and its workers: limits, pages that are given back, very large tasks.
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <vector>

#include "freehold/process/process_info.hpp"
#include "tests/unit/process/process_pool_support.hpp"

namespace freehold {
namespace {

using namespace process_test;

// Bytes of this process's table that exist.
std::uint64_t table_bytes() {
  for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code none;
    if (std::filesystem::read_symlink(file, none).string().find("memfd:freehold tasks") == std::string::npos) continue;
    struct stat status{};
    if (::stat(file.path().c_str(), &status) == 0) return static_cast<std::uint64_t>(status.st_blocks) * 512;
  }
  return 0;
}
TEST(ProcessPool_Unit, VeryLargeTasksInTurn_NothingStaysOfTheFormer) {
  constexpr std::size_t kBytes = 32u << 20, kKept = 1u << 20;
  ProcessPoolOptions how = options();
  how.max_open_tasks = 4;
  how.max_input_bytes = how.max_output_bytes = kBytes;
  how.max_attempts = 1;
  ProcessPool pool(how);
  std::string input = "size " + std::to_string(kBytes) + " ";
  input.resize(kBytes, 'x');
  for (int i = 0; i < 3; ++i) {
    const Result result = pool.call(input);
    ASSERT_EQ(result.bytes().size(), kBytes);
    EXPECT_LE(table_bytes(), kBytes + kKept);  // its output
  }
  EXPECT_LE(table_bytes(), kKept);
  EXPECT_EQ(pool.call("fill").error().kind, FailureKind::kSignal);  // it fills its output first
  EXPECT_LE(table_bytes(), kKept);
}
TEST(ProcessPool_Unit, InputBeyondTheSystemsMemory_RefusedWithoutACopy) {
  ProcessPoolOptions how = options();
  how.max_open_tasks = 2;
  how.max_input_bytes = std::uint64_t{1} << 40;
  ProcessPool pool(how);
  ASSERT_TRUE(pool.ok()) << pool.error();
  void* const room = ::mmap(nullptr, how.max_input_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(room, MAP_FAILED);
  Future refused = pool.submit(std::span(static_cast<const std::byte*>(room), how.max_input_bytes));
  EXPECT_EQ(refused.error().kind, FailureKind::kNoMemory);
  EXPECT_EQ(text(refused.get().error()), "too little memory is left for it");
  EXPECT_LT(table_bytes(), 1u << 20);
  EXPECT_TRUE(pool.call("echo small").ok());
  ::munmap(room, how.max_input_bytes);
}
TEST(ProcessPool_Unit, NoMemoryForResultsThatMustLeaveTheTable_RefusedAndTheyStay) {
  constexpr std::size_t kBytes = 64u << 20;
  ProcessPoolOptions how = options();
  how.max_open_tasks = 2;
  how.max_output_bytes = kBytes;
  ProcessPool pool(how);
  Future futures[] = {pool.submit("size " + std::to_string(kBytes)), pool.submit("size " + std::to_string(kBytes))};
  for (Future& future : futures) future.wait();
  struct rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  struct rlimit small = before;
  small.rlim_cur = test::own_memory().mapped + kBytes / 2;
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &small), 0);
  const FailureKind refused = pool.submit("echo third").error().kind;
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_EQ(refused, FailureKind::kNoMemory);
  for (Future& future : futures) EXPECT_EQ(future.get().bytes().size(), kBytes);
}
TEST(ProcessPool_Unit, WorkerIsWhatTheSystemKillsWhereMemoryRunsOut) {
  ProcessPool pool(options());
  EXPECT_EQ(pool.call("run grep -qx 1000 /proc/self/oom_score_adj").text(), "0");
}
TEST(ProcessPool_Unit, AvailableMemory_LeastOfMachineAndGroups) {
  const test::Folder folder;
  const std::filesystem::path& root = folder.path();
  const auto file = [&](const std::string& path, const std::string& content) { folder.file(path, content); };
  file("proc/meminfo", "MemTotal: 9000 kB\nMemAvailable: 8000 kB\n");
  EXPECT_EQ(process::available_memory(root.c_str()), 8000u * 1024);
  file("proc/self/cgroup", "4:cpu,memory:/one\n0::/two/three\n");
  file("sys/fs/cgroup/memory/one/memory.limit_in_bytes", "7000000\n");
  file("sys/fs/cgroup/memory/one/memory.usage_in_bytes", "1000000\n");
  file("sys/fs/cgroup/memory/one/memory.stat", "cache 600000\ntotal_inactive_file 500000\n");
  EXPECT_EQ(process::available_memory(root.c_str()), 6'500'000u);
  file("sys/fs/cgroup/two/three/memory.max", "max\n");
  file("sys/fs/cgroup/two/memory.max", "3000000\n");
  file("sys/fs/cgroup/two/memory.current", "3100000\n");
  file("sys/fs/cgroup/two/memory.stat", "inactive_file 400000\n");
  EXPECT_EQ(process::available_memory(root.c_str()), 300'000u);
}
TEST(ProcessPool_Unit, LargeTasksOverFailedAndDropped_PagesAreGivenBack) {
  ProcessPoolOptions how = options();
  how.max_attempts = 1;
  how.max_open_tasks = 8;
  how.max_input_bytes = how.max_output_bytes = 16u << 20;
  ProcessPool pool(how);
  std::vector<Future> all;
  all.push_back(pool.submit("size 16000000"));
  all.push_back(pool.submit("fill crash"));
  all.push_back(pool.submit(std::string(16'000'000, 'x')));
  all.push_back(pool.submit("size 16000000"));
  all[3].wait();
  all[3].cancel();
  for (int i = 0; i < 3; ++i) static_cast<void>(all[static_cast<unsigned>(i)].get());
  EXPECT_GT(table_bytes(), 48u << 20);
  EXPECT_TRUE(comes_true([] { return table_bytes() < 4u << 20; })) << table_bytes();
}
TEST(ProcessPool_Unit, CoreDump_LeavesTheTableOut) {
  ProcessPool pool(options());
  std::ifstream maps("/proc/self/smaps");
  std::string line;
  bool inside = false, found = false;
  while (std::getline(maps, line)) {
    if (line.find("memfd:freehold tasks") != std::string::npos) inside = true;
    if (!inside || !line.starts_with("VmFlags:")) continue;
    EXPECT_NE(line.find(" dd"), std::string::npos) << line;
    found = true;
    inside = false;
  }
  EXPECT_TRUE(found);
}
// A memory cgroup in which this test may make others; empty: none was found, and why.
std::string memory_cgroup(std::string& why) {
  if (const char* named = std::getenv("FREEHOLD_TEST_MEMORY_CGROUP")) return named;
  std::ifstream groups("/proc/self/cgroup");
  why = "no memory cgroup can be written to; FREEHOLD_TEST_MEMORY_CGROUP names one";
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(":memory:");
    const std::string folder = first == std::string::npos ? "" : "/sys/fs/cgroup/memory" + line.substr(first + 8);
    if (!folder.empty() && ::access((folder + "/memory.limit_in_bytes").c_str(), W_OK) == 0) return folder;
  }
  return "";
}
TEST(ProcessPool_Unit, OutOfMemoryByCgroup_FailsWithMemory) {
  std::string why;
  ProcessPoolOptions how = options();
  how.memory_cgroup = memory_cgroup(why);
  if (how.memory_cgroup.empty()) GTEST_SKIP() << why;
  how.kill_rss_bytes = 200 << 20;  // sanitizers need much themselves
  how.max_attempts = 1;
  // As a pool that was killed leaves it: its process is no more.
  const pid_t dead = ::fork();
  if (dead == 0) ::_exit(0);
  ::waitpid(dead, nullptr, 0);
  const std::string left = how.memory_cgroup + "/freehold-" + std::to_string(dead) + "-0-0";
  if (::mkdir(left.c_str(), 0755) != 0) GTEST_SKIP() << "no cgroup can be made in " << how.memory_cgroup;
  const auto groups = [&] {
    int n = 0;
    for (const auto& file : std::filesystem::directory_iterator(how.memory_cgroup))
      n += file.path().filename().string().starts_with("freehold-" + std::to_string(::getpid())) ? 1 : 0;
    return n;
  };
  {
    ProcessPool pool(how);
    if (!pool.ok()) GTEST_SKIP() << pool.error();
    EXPECT_EQ(groups(), 2);
    EXPECT_FALSE(std::filesystem::exists(left));
    EXPECT_EQ(pool.call("hold 400").error(), (Failure{FailureKind::kMemory, 200}));
    EXPECT_EQ(pool.call("crash").error(), (Failure{FailureKind::kSignal, SIGKILL}));
    EXPECT_EQ(pool.call("echo x").text(), "x");
    EXPECT_TRUE(comes_true([&] { return ended(pool, ExitReason::kMemory) == 1 && ended(pool, ExitReason::kSignal) == 1; }));
  }
  EXPECT_EQ(groups(), 0);
}

}  // namespace
}  // namespace freehold
