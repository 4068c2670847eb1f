// SPDX-License-Identifier: MIT
// The pool with a component that misbehaves on command: every kind of failure has its reason, and harms no other task.
#include "freehold/process.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <coroutine>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "freehold/process/command_job.hpp"
#include "freehold/process/confine.hpp"
#include "freehold/process/histogram.hpp"
#include "freehold/process/process_info.hpp"
#include "freehold/process/worker_protocol.hpp"

// A process that is started comes back only when it has ended: the supervisor was held up so long.
static std::atomic<bool> g_starts_slowly{false};

extern "C" int posix_spawnp(pid_t* pid, const char* program, const posix_spawn_file_actions_t* actions,
                            const posix_spawnattr_t* attributes, char* const arguments[], char* const environment[]) {
  static const auto spawn = reinterpret_cast<decltype(&posix_spawnp)>(::dlsym(RTLD_NEXT, "posix_spawnp"));
  const int error = spawn(pid, program, actions, attributes, arguments, environment);
  for (int i = 0; i < 1000 && error == 0 && g_starts_slowly && ::kill(*pid, 0) == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return error;
}

namespace freehold {
namespace {

using namespace std::chrono_literals;
using process::ExitReason;
using process::Failure;
using process::FailureKind;
using process::Future;
using process::Result;
using process::SubmitError;

ProcessPoolOptions options() {
  ProcessPoolOptions how;
  how.component = FREEHOLD_TEST_COMPONENT;
  how.worker_program = FREEHOLD_WORKER_PROGRAM;
  how.max_workers = 2;
  how.max_input_bytes = how.max_output_bytes = 8192;
  return how;
}
std::uint64_t ended(const ProcessPool& pool, ExitReason why) {
  return pool.stats().workers.ended[static_cast<std::size_t>(why)];
}
// Looks until it holds, for at most ten seconds.
template <class Holds>
bool comes_true(Holds holds) {
  for (int i = 0; i < 2000; ++i) {
    if (holds()) return true;
    std::this_thread::sleep_for(5ms);
  }
  return false;
}
std::size_t open_descriptors() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator{}));
}
bool has_children() { return ::waitpid(-1, nullptr, WNOHANG) != -1; }

// A folder with a copy of the component, gone afterwards.
class Deployed {
 public:
  explicit Deployed(const char* name) : folder_(testing::TempDir() + "freehold_" + name + std::to_string(::getpid())) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
  }
  ~Deployed() { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string component() const { return folder_ + "/component.so"; }
  [[nodiscard]] std::string path(const char* name) const { return folder_ + "/" + name; }
  void put() const {
    std::filesystem::copy_file(FREEHOLD_TEST_COMPONENT, component() + ".new");
    std::filesystem::rename(component() + ".new", component());
  }
  void remove() const { std::filesystem::remove(component()); }

 private:
  std::string folder_;
};

TEST(ProcessPool_Unit, WorkerKilledInATask_TaskRestartedWithin50ms) {
  const std::string mark = testing::TempDir() + "freehold_once_" + std::to_string(::getpid());
  std::filesystem::remove(mark);
  ProcessPool pool(options());
  ASSERT_TRUE(pool.call("echo up").ok());
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(pool.call("once " + mark).ok());
  const auto took = std::chrono::steady_clock::now() - begin;
#if defined(NDEBUG) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
  EXPECT_LT(took, 500ms);  // 50 ms on a machine with nothing else to do; a loaded one must not fail the test
#endif
  RecordProperty("milliseconds", static_cast<int>(took / 1ms));
  EXPECT_EQ(pool.stats().workers.handed_on, 1u);
  std::filesystem::remove(mark);
}
TEST(ProcessPool_Unit, NothingToDo_SupervisorSleeps) {
  ProcessPoolOptions how = options();
  how.min_workers = 2;
  ProcessPool pool(how);
  ASSERT_TRUE(pool.call("echo x").ok());
  const auto switches = [] {
    long n = 0;
    for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
      std::ifstream status(thread.path() / "status");
      for (std::string word; status >> word;)
        if (word == "voluntary_ctxt_switches:" && status >> word) n += std::stol(word);
    }
    return n;
  };
  ASSERT_TRUE(comes_true([&] {
    const long before = switches();
    std::this_thread::sleep_for(100ms);
    return switches() - before <= 3;  // this thread's own; a tick would be ten
  }));
  EXPECT_EQ(pool.call("echo x").text(), "x");
}
TEST(ProcessPool_Unit, TooMuchMemoryInATask_Killed) {
  ProcessPoolOptions how = options();
  how.max_attempts = 1;
  how.kill_rss_bytes = 192u << 20;
  ProcessPool pool(how);
  ASSERT_TRUE(pool.call("echo small").ok());
  EXPECT_EQ(pool.call("hold 240").failure(), (Failure{FailureKind::kMemory, 192}));
  EXPECT_TRUE(pool.call("echo small").ok());
}
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
  EXPECT_EQ(pool.call("fill").failure().kind, FailureKind::kSignal);  // it fills its output first
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
  EXPECT_EQ(refused.submit_error(), SubmitError::kNoMemory);
  EXPECT_EQ(text(refused.get().failure()), "too little memory is left for it");
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
  unsigned long pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  struct rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  struct rlimit small = before;
  small.rlim_cur = pages * static_cast<unsigned long>(::sysconf(_SC_PAGESIZE)) + kBytes / 2;
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &small), 0);
  const SubmitError refused = pool.submit("echo third").submit_error();
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_EQ(refused, SubmitError::kNoMemory);
  for (Future& future : futures) EXPECT_EQ(future.get().bytes().size(), kBytes);
}
TEST(ProcessPool_Unit, WorkerIsWhatTheSystemKillsWhereMemoryRunsOut) {
  ProcessPool pool(options());
  EXPECT_EQ(pool.call("run grep -qx 1000 /proc/self/oom_score_adj").text(), "0");
}
TEST(ProcessPool_Unit, AvailableMemory_LeastOfMachineAndGroups) {
  const std::filesystem::path root =
      std::filesystem::temp_directory_path() / ("freehold-memory-" + std::to_string(::getpid()));
  const auto file = [&](const std::string& path, const std::string& content) {
    std::filesystem::create_directories((root / path).parent_path());
    std::ofstream(root / path) << content;
  };
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
  std::filesystem::remove_all(root);
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
TEST(ProcessPool_Unit, Idle_WorkersEnd_AndComeBack) {
  ProcessPoolOptions how = options();
  how.idle_timeout = 20ms;
  ProcessPool pool(how);
  for (unsigned i = 1; i <= 2; ++i) {
    ASSERT_TRUE(pool.call("echo x").ok());
    EXPECT_TRUE(comes_true([&] { return ended(pool, ExitReason::kIdle) >= i && pool.stats().workers.live == 0; }))
        << text(pool.stats());
  }
}
TEST(ProcessPool_Unit, MoreFuturesThanEntries_AllAreDelivered) {
  ProcessPoolOptions how = options();
  how.max_open_tasks = 16;
  ProcessPool pool(how);
  std::vector<Future> futures;
  for (int i = 0; i < 300; ++i) futures.push_back(pool.submit(i % 50 == 7 ? "fail 42" : "echo " + std::to_string(i)));
  futures[20].cancel();
  for (int i = 299; i >= 0; --i) {
    const Result result = futures[static_cast<unsigned>(i)].get();
    if (i == 20)
      EXPECT_EQ(result.failure().kind, FailureKind::kRefused);
    else if (i % 50 == 7)
      EXPECT_EQ(result.failure(), (Failure{FailureKind::kComponent, 42}));
    else
      EXPECT_EQ(result.text(), std::to_string(i));
  }
  EXPECT_EQ(pool.stats().tasks.delivered, 299u);
  EXPECT_EQ(pool.submit("echo x", {.submit_timeout = 0ns}).get().text(), "x");
}
TEST(ProcessPool_Unit, WorkerDiesOfATask_LogSaysWhichAndWhyAndItsLastWords) {
  std::mutex lock;
  std::vector<process::PoolEvent> events;
  ProcessPoolOptions how = options();
  how.max_attempts = 2;
  how.keep_standard_error = true;
  how.log = [&](const process::PoolEvent& event) {
    const std::lock_guard guard(lock);
    events.push_back(event);
  };
  {
    ProcessPool pool(how);
    Future task = pool.submit("say out of luck");
    const std::uint64_t id = task.id();
    EXPECT_EQ(task.get().failure(), (Failure{FailureKind::kExit, 3}));
    using Kind = process::PoolEvent::Kind;
    std::vector<Kind> seen;
    ASSERT_TRUE(comes_true([&] {
      const std::lock_guard guard(lock);
      return events.size() >= 4;
    }));
    for (const process::PoolEvent& event : events) {
      seen.push_back(event.kind);
      EXPECT_NE(event.last_lines.find("out of luck"), std::string::npos) << text(event);
      EXPECT_EQ(event.task, event.kind == Kind::kWorkerEnded ? 0 : id);
    }
    EXPECT_EQ(seen, (std::vector{Kind::kTaskHandedOn, Kind::kWorkerEnded, Kind::kTaskFailed, Kind::kWorkerEnded}));
    EXPECT_NE(text(events[2]).find("attempt 2, worker "), std::string::npos) << text(events[2]);
  }
}
// A busy machine can keep the supervisor from its CPU between the result and whatever it does afterwards.
TEST(ProcessPool_Unit, WorkerDiesOfATask_CountedBeforeItsClientCanKnow) {
  std::atomic<ProcessPool*> pool{nullptr};
  std::mutex lock;
  std::vector<std::array<std::uint64_t, 2>> counted;  // ended, handed on
  ProcessPoolOptions how = options();
  how.max_attempts = 2;
  how.max_workers = 1;
  how.log = [&](const process::PoolEvent& event) {
    using Kind = process::PoolEvent::Kind;
    if (event.kind != Kind::kTaskHandedOn && event.kind != Kind::kTaskFailed) return;
    const process::SupervisorStats workers = pool.load()->stats().workers;
    const std::lock_guard guard(lock);
    counted.push_back({workers.ended[static_cast<std::size_t>(process::ExitReason::kExit)], workers.handed_on});
  };
  ProcessPool made(how);
  pool = &made;
  EXPECT_EQ(made.submit("say out of luck").get().failure(), (Failure{FailureKind::kExit, 3}));
  const std::lock_guard guard(lock);  // the log was told before the result, too
  EXPECT_EQ(counted, (std::vector<std::array<std::uint64_t, 2>>{{1, 1}, {2, 1}}));
}
TEST(ProcessPool_Unit, TaskHasToBeOverWithin_WaitingOrRunning_FailsWithDeadline) {
  ProcessPoolOptions how = options();
  how.max_workers = 1;
  how.max_attempts = 10;
  ProcessPool pool(how);
  Future runs = pool.submit("hang", {.total_timeout = 60ms});
  Future waits = pool.submit("echo x", {.total_timeout = 30ms});
  EXPECT_EQ(waits.get().failure(), (Failure{FailureKind::kDeadline, 30}));
  EXPECT_EQ(runs.get().failure(), (Failure{FailureKind::kDeadline, 60}));
  EXPECT_EQ(pool.submit("echo x", {.total_timeout = 10s}).get().text(), "x");
}
TEST(ProcessPool_Unit, ComponentRefuses_RunsAgainAfterItsDelay) {
  ProcessPoolOptions how = options();
  how.retry = {.max_attempts = 5, .delay = 60ms};
  ProcessPool pool(how);
  const Deployed folder("retry_delay");
  const auto begin = std::chrono::steady_clock::now();
  Future task = pool.submit("refuse 7 " + folder.path("a"));
  ASSERT_TRUE(comes_true([&] { return pool.stats().waiting == 1; }));
  EXPECT_EQ(pool.call("echo x").text(), "x");  // nobody waits for it
  EXPECT_TRUE(task.get().ok());
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 120ms);
  how.retry.delay = 1h;
  Future never = pool.submit("fail 7", {.total_timeout = 50ms, .retry = how.retry});
  EXPECT_EQ(never.get().failure(), (Failure{FailureKind::kDeadline, 50}));
  Future cancelled = pool.submit("fail 7", {.retry = how.retry});
  ASSERT_TRUE(comes_true([&] { return pool.stats().waiting == 1; }));
  cancelled.cancel();
  EXPECT_EQ(pool.stats().waiting, 0u);
}
TEST(ProcessPool_Unit, Callbacks_EachOnceOnOneThread_WhateverTheEnd) {
  std::optional<ProcessPool> pool(std::in_place, options());
  std::mutex lock;
  std::vector<std::string> ends;
  std::vector<std::thread::id> threads;
  const auto note = [&](const Result& result) {
    const std::lock_guard guard(lock);
    ends.push_back(result.ok() ? std::string(result.text()) : text(result.failure()));
    threads.push_back(std::this_thread::get_id());
  };
  std::atomic<int> called{0};
  for (int i = 0; i < 600; ++i)  // more than there are entries
    pool->submit("echo " + std::to_string(i)).then([&, i](const Result& result) {
      EXPECT_EQ(result.text(), std::to_string(i));
      ++called;
    });
  EXPECT_TRUE(comes_true([&] { return called == 600; })) << called;
  pool->submit("crash", {.max_attempts = 1}).then(note);
  pool->submit("hang", {.run_timeout = 20ms, .max_attempts = 1}).then(note);
  EXPECT_TRUE(comes_true([&] { return pool->stats().tasks.failed == 2; }));
  pool->submit("hang").then(note);
  pool->submit("hang").then(note);
  pool->submit("echo never").then(note);
  Future refused(SubmitError::kFull);
  refused.then([&](const Result& result) { EXPECT_EQ(result.failure().kind, FailureKind::kRefused); });
  pool.reset();
  EXPECT_EQ(ends.size(), 5u);
  EXPECT_EQ(std::ranges::count(ends, "no worker can be started"), 3);
  for (const std::thread::id thread : threads) EXPECT_TRUE(thread == threads[0] && thread != std::this_thread::get_id());
}
// A coroutine that nobody waits for.
struct Detached {
  struct promise_type {
    Detached get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};
Detached sum_of(ProcessPool& pool, int n, std::atomic<int>& sum) {
  for (int i = 1; i <= n; ++i) {
    const Result result = co_await pool.run("echo " + std::to_string(i));
    sum += result.ok() ? std::stoi(std::string(result.text())) : 100'000;
  }
  const Result refused = co_await process::Awaited(pool.submit(std::string(8193, 'x')));
  sum += refused.failure().kind == FailureKind::kRefused ? 1 : 100'000;
}
TEST(ProcessPool_Unit, Coroutines_AwaitTheirTasks) {
  ProcessPool pool(options());
  std::atomic<int> sum{0};
  for (int i = 0; i < 20; ++i) sum_of(pool, 50, sum);
  EXPECT_TRUE(comes_true([&] { return sum == 20 * (50 * 51 / 2 + 1); })) << sum;
}
// Why the kernel cannot confine a worker so; empty if it can.
std::string refusal_of(const ProcessPoolOptions& how) {
  ProcessPool pool(how);
  return pool.call("echo x").ok() ? "" : pool.error();
}
TEST(ProcessPool_Unit, ConfinedToFiles_OthersCannotBeOpened) {
  const Deployed folder("confined");
  folder.put();
  for (const char* name : {"in", "out", "other"}) std::filesystem::create_directory(folder.path(name));
  for (const char* name : {"in/a", "other/a"}) std::ofstream(folder.path(name)) << "x";
  ProcessPoolOptions how = options();
  how.component = folder.component();
  how.max_rss_bytes = 1ull << 40;  // so that the worker looks at its own memory
  how.confinement = {.files = true, .readable = {folder.path("in")}, .writable = {folder.path("out")}};
  if (const std::string why = refusal_of(how); !why.empty()) GTEST_SKIP() << why;
  ProcessPool pool(how);
  const auto errno_of = [&](const std::string& task) {
    return pool.call(task).text() == "0" ? 0 : std::stoi(std::string(pool.call(task).text()));
  };
  EXPECT_EQ(errno_of("read " + folder.path("in/a")), 0);
  EXPECT_EQ(errno_of("write " + folder.path("in/a")), EACCES);
  EXPECT_EQ(errno_of("write " + folder.path("out/new")), 0);
  EXPECT_EQ(errno_of("read " + folder.path("out/new")), 0);
  EXPECT_EQ(errno_of("read " + folder.path("other/a")), EACCES);
  EXPECT_EQ(errno_of("read /etc/passwd"), EACCES);
  EXPECT_EQ(errno_of("read /proc/self/statm"), 0);
  EXPECT_EQ(errno_of("socket"), 0);
  EXPECT_NE(errno_of("run /bin/true"), 0) << "the shell is not among the files";
}
TEST(ProcessPool_Unit, ConfinedWithoutNetwork_NoSocketsNorInPrograms) {
  ProcessPoolOptions how = options();
  how.confinement.no_network = true;
  if (const std::string why = refusal_of(how); !why.empty()) GTEST_SKIP() << why;
  ProcessPool pool(how);
  EXPECT_EQ(pool.call("socket").text(), std::to_string(EACCES));
  EXPECT_EQ(pool.call("socket 1").text(), std::to_string(EACCES));
  EXPECT_EQ(pool.call("read /etc/passwd").text(), "0");
  EXPECT_EQ(pool.call("run grep -q 'NoNewPrivs:.1' /proc/self/status").text(), "0");
  EXPECT_EQ(pool.call("run grep -q 'Seccomp:.2' /proc/self/status").text(), "0");
}
TEST(Confinement_Unit, Text_ThereAndBack) {
  const process::Confinement confinement{.no_network = true, .files = true, .readable = {"/a", "/b c"}, .writable = {"/d"}};
  const process::Confinement back = process::confinement_of(process::text_of(confinement));
  EXPECT_TRUE(back.no_network && back.files);
  EXPECT_EQ(back.readable, confinement.readable);
  EXPECT_EQ(back.writable, confinement.writable);
  EXPECT_FALSE(process::confinement_of("").wanted());
}
// A memory cgroup in which this test may make others; empty if there is none, and why.
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
    EXPECT_EQ(pool.call("hold 400").failure(), (Failure{FailureKind::kMemory, 200}));
    EXPECT_EQ(pool.call("crash").failure(), (Failure{FailureKind::kSignal, SIGKILL}));
    EXPECT_EQ(pool.call("echo x").text(), "x");
    EXPECT_TRUE(comes_true([&] { return ended(pool, ExitReason::kMemory) == 1 && ended(pool, ExitReason::kSignal) == 1; }));
  }
  EXPECT_EQ(groups(), 0);
}
TEST(ProcessPool_Unit, TaskOfOneGiB_InAndOutWhole) {
  constexpr std::size_t kGiB = std::size_t{1} << 30;
  std::ifstream memory("/proc/meminfo");
  std::size_t available = 0;
  for (std::string line; std::getline(memory, line);)
    static_cast<void>(std::sscanf(line.c_str(), "MemAvailable: %zu", &available));
  if (available < 8 * kGiB / 1024) GTEST_SKIP() << "only " << available / 1024 << " MiB of memory are available";
  ProcessPoolOptions how = options();
  how.max_workers = how.max_open_tasks = 1;
  how.max_input_bytes = how.max_output_bytes = kGiB;
  ProcessPool pool(how);
  process::Draft draft = pool.draft();
  std::memcpy(draft.room().data(), "last ", 5);
  std::memset(draft.room().data() + 5, 'x', kGiB - 6);
  draft.room()[kGiB - 1] = std::byte{'z'};
  const Result result = draft.submit(kGiB).get();
  ASSERT_TRUE(result.ok()) << text(result.failure());
  ASSERT_EQ(result.bytes().size(), kGiB);
  const std::byte* const bytes = result.bytes().data();
  EXPECT_EQ(*bytes, std::byte{'z'});
  EXPECT_EQ(std::memcmp(bytes, bytes + 1, kGiB - 1), 0) << "some byte differs";  // a loop takes half a minute without -O
}
TEST(ProcessPool_Unit, CommandsAreRun_ByTheWorkerProgramAlone) {
  ProcessPoolOptions how = options();
  how.component.clear();
  how.command = {FREEHOLD_WORKER_PROGRAM, process::kExecWorker};
  ProcessPool pool(how);
  const Result result = pool.call(std::string_view("7\0echo $FREEHOLD_SEQ", 20));
  ASSERT_TRUE(result.ok()) << text(result.failure());
  EXPECT_EQ(result.text().substr(sizeof(process::CommandResult)), "7\n");
}
TEST(ProcessPool_Unit, WorkerProgramOfAnInstallation_FoundByItsHeader) {
  const std::filesystem::path prefix = std::filesystem::temp_directory_path() / ("freehold-" + std::to_string(::getpid()));
  for (const char* place : {"bin", "tools/freehold"}) {
    const std::filesystem::path worker = prefix / place / "freehold-worker";
    std::filesystem::create_directories(worker.parent_path());
    std::filesystem::create_symlink("/bin/true", worker);
    EXPECT_EQ(find_worker_program((prefix / "include/freehold/detail/process/process_pool.hpp").c_str()), worker);
    std::filesystem::remove(worker);
    std::filesystem::copy_file("/bin/true", worker);
    std::filesystem::permissions(worker, std::filesystem::perms::all);  // anybody may have written it
    EXPECT_NE(find_worker_program((prefix / "include/freehold/detail/process/process_pool.hpp").c_str()), worker);
    std::filesystem::permissions(worker, std::filesystem::perms::owner_all);
    std::filesystem::permissions(worker.parent_path(), std::filesystem::perms::all);
    EXPECT_NE(find_worker_program((prefix / "include/freehold/detail/process/process_pool.hpp").c_str()), worker);
    std::filesystem::remove_all(prefix);
  }
  EXPECT_EQ(find_worker_program("freehold/detail/process/process_pool.hpp"), find_worker_program("/"));
}
TEST(ProcessPool_Unit, Ok_AWorkerHasAnswered_OrNoneCan) {
  const ProcessPool pool(options());
  EXPECT_TRUE(pool.error().empty());
  EXPECT_EQ(pool.stats().workers.started, 0u);
  EXPECT_TRUE(pool.ok());
  EXPECT_EQ(pool.stats().workers.started, 1u);
  EXPECT_TRUE(pool.ok());
  EXPECT_EQ(pool.stats().workers.started, 1u);
  ProcessPoolOptions missing = options();
  missing.worker_program = "/nowhere/freehold-worker";
  const ProcessPool without(missing);
  EXPECT_FALSE(without.ok());
  EXPECT_FALSE(without.error().empty());
}
TEST(ProcessPool_Unit, OkInTheLogOrInAChildOfFork_DoesNotWait) {
  ProcessPoolOptions how = options();
  how.worker_program = "/nowhere/freehold-worker";
  std::atomic<const ProcessPool*> shown{nullptr};
  std::atomic<unsigned> asked{0};
  how.log = [&](const process::PoolEvent&) {
    if (const ProcessPool* pool = shown.load()) asked += pool->ok() ? 1 : 1;
  };
  const ProcessPool pool(how);
  shown = &pool;
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(5);
    (void)pool.ok();
    ::_exit(0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(pool.ok());
  EXPECT_GE(asked, 1u);
}
TEST(ProcessPool_Unit, LoadingHangs_KilledWithAReason) {
  const Deployed deployed("hung");
  ProcessPoolOptions how = options();
  how.worker_program = deployed.path("hung.sh");
  std::ofstream(how.worker_program) << "#!/bin/sh\nmkdir 2>/dev/null " << deployed.path("1") << " && exec sleep 1000\n"
                                    << "exec " FREEHOLD_WORKER_PROGRAM " \"$@\"\n";
  std::filesystem::permissions(how.worker_program, std::filesystem::perms::owner_all);
  how.load_timeout = 300ms;
  how.max_workers = 1;
  ProcessPool pool(how);
  Future task = pool.submit("echo x");
  EXPECT_TRUE(task.wait_for(10s)) << text(pool.stats());
  EXPECT_EQ(ended(pool, ExitReason::kNeverUp), 1u);
}
TEST(ProcessPool_Unit, NoComponent_BrokenWithAReason_TasksFail) {
  ProcessPoolOptions how = options();
  how.component = "/nowhere/none.so";
  ProcessPool pool(how);
  EXPECT_EQ(pool.call("echo x").failure().kind, FailureKind::kNoWorker);
  EXPECT_NE(pool.error().find("status 85"), std::string::npos) << pool.error();
  EXPECT_EQ(pool.submit("echo x").submit_error(), SubmitError::kNoWorker);
  EXPECT_GE(pool.stats().workers.started, 5u);
}
TEST(ProcessPool_Unit, NoProgramOrNothingAtAll_BrokenWithAReason) {
  for (const char* program : {"/nowhere/program", "no-program-of-the-path"}) {
    ProcessPoolOptions how = options();
    how.worker_program = program;
    how.component = "no-library-of-the-path.so";
    how.keep_standard_error = true;
    ProcessPool pool(how);
    EXPECT_EQ(pool.call("echo x").failure().kind, FailureKind::kNoWorker);
    EXPECT_NE(pool.error().find(std::string(program) + " cannot be started"), std::string::npos) << pool.error();
  }
  EXPECT_FALSE(ProcessPool({}).ok());
}
TEST(ProcessPool_Unit, ComponentComesLate_PoolMendsItself) {
  const Deployed deployed("late");
  ProcessPoolOptions how = options();
  how.component = deployed.component();
  ProcessPool pool(how);
  EXPECT_EQ(pool.call("echo x").failure().kind, FailureKind::kNoWorker);
  EXPECT_FALSE(pool.ok());
  deployed.put();
  EXPECT_TRUE(comes_true([&] { return pool.ok(); })) << pool.error();
  EXPECT_EQ(pool.call("echo x").text(), "x");
}
// Those that have ended tasks say nothing against the next one, however many die.
TEST(ProcessPool_Unit, WorkersKilledBetweenTasks_TheNextStartsWithoutABackOff) {
  ProcessPoolOptions how = options();
  how.max_workers = 1;
  ProcessPool pool(how);
  auto least = std::chrono::nanoseconds::max();
  for (unsigned killed = 0; killed < 18; ++killed) {
    const auto begin = std::chrono::steady_clock::now();
    const Result worker = pool.call("pid");
    ASSERT_TRUE(worker.ok()) << text(pool.stats());
    if (killed >= 14) least = std::min<std::chrono::nanoseconds>(least, std::chrono::steady_clock::now() - begin);
    ASSERT_TRUE(comes_true([&] { return pool.stats().tasks.delivered == killed + 1; }));
    ::kill(std::stoi(std::string(worker.text())), SIGKILL);
    ASSERT_TRUE(comes_true([&] { return ended(pool, ExitReason::kSignal) == killed + 1; })) << text(pool.stats());
  }
  EXPECT_LT(least, 900ms) << "after 14 deaths the back-off is 1.02 s";
}
TEST(ProcessPool_Unit, ComponentWritesOverTheHeader_PoolBeginsAnew) {
  ProcessPool pool(options());
  for (int i = 0; i < 3; ++i) {
    const Result result = pool.call("header");  // it may be told before the damage is seen
    EXPECT_TRUE(result.ok() || result.failure().kind == FailureKind::kCorrupt) << static_cast<int>(result.failure().kind);
    EXPECT_TRUE(comes_true([&] { return pool.stats().workers.damaged == static_cast<unsigned>(i) + 1; }))
        << text(pool.stats());
    EXPECT_EQ(pool.call("echo x").text(), "x");
  }
}
TEST(ProcessPool_Unit, ComponentWritesWildly_FiguresArePossible) {
  ProcessPoolOptions how = options();
  how.log = [](const process::PoolEvent&) {};
  ProcessPool pool(how);
  std::uint64_t most = 0;
  for (int seed = 1; seed <= 30; ++seed) {
    (void)pool.call("wild " + std::to_string(seed) + " 300");
    most = std::max(most, pool.stats().workers.retried);
  }
  EXPECT_TRUE(comes_true([&] { return pool.call("echo x").text() == "x"; })) << text(pool.stats());
  EXPECT_LE(std::max(most, pool.stats().workers.retried), 1'000'000u);
}
// A length beyond the output, with or without a reason of the component's, was taken for damage of the whole table.
TEST(ProcessPool_Unit, ComponentSaysMoreThanThereIsRoomFor_ItsTaskFailsAlone) {
  ProcessPoolOptions how = options();
  how.max_workers = 1;
  ProcessPool pool(how);
  const std::string worker(pool.call("pid").text());
  EXPECT_EQ(pool.call("lie 0").failure(), (Failure{FailureKind::kComponent, -1}));
  EXPECT_EQ(pool.call("lie 42").failure(), (Failure{FailureKind::kComponent, 42}));
  EXPECT_EQ(pool.call("pid").text(), worker) << "it goes on";
}
// Whoever inherits the dead reaps them some time; until then they are zombies, which run no more.
bool is_gone(int pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  return !std::getline(stat, text) || text.find(") Z ") != std::string::npos;
}
int number_in(const std::string& file) {
  int number = 0;
  std::ifstream(file) >> number;
  return number;
}
TEST(ProcessPool_Unit, ComponentLeavesAChild_GoneWithTheWorker) {
  const std::string file = testing::TempDir() + "freehold_child_" + std::to_string(::getpid());
  ProcessPoolOptions how = options();
  how.max_attempts = 1;
  int children[2] = {};
  {
    ProcessPool pool(how);
    ASSERT_TRUE(pool.call("leave " + file).ok());
    children[0] = number_in(file);
    EXPECT_FALSE(is_gone(children[0]));
    Future hangs = pool.submit("leavehang " + file, {.run_timeout = 100ms});
    EXPECT_EQ(hangs.get().failure().kind, FailureKind::kDeadline);
    children[1] = number_in(file);
    EXPECT_TRUE(comes_true([&] { return is_gone(children[1]); }));
  }
  EXPECT_TRUE(comes_true([&] { return is_gone(children[0]); }));
  std::filesystem::remove(file);
}
TEST(ProcessPool_Unit, PoolEnds_NoProcessNoDescriptorLeft) {
  const std::size_t before = open_descriptors();
  {
    ProcessPool pool(options());
    Future drops = pool.submit("sleep 20");
    ASSERT_TRUE(pool.call("echo x").ok());
    drops.cancel();
    EXPECT_GT(open_descriptors(), before);
  }
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_FALSE(has_children());
}
// Such a worker can be gone before it is watched: it was not killed by the pool, and its program is not broken.
TEST(ProcessPool_Unit, ProgramIgnoresItsChildren_OneDiesBeforeItIsWatched) {
  const auto former = ::signal(SIGCHLD, SIG_IGN);
  ProcessPoolOptions how = options();
  how.max_attempts = how.max_workers = 1;
  ProcessPool pool(how);
  g_starts_slowly = true;
  const Failure seen = pool.call("crash").failure();
  g_starts_slowly = false;
  EXPECT_EQ(seen, (Failure{FailureKind::kSignal, 0}));
  EXPECT_EQ(ended(pool, ExitReason::kNeverUp), 0u) << text(pool.stats());
  EXPECT_EQ(ended(pool, ExitReason::kSignal), 1u) << text(pool.stats());
  EXPECT_EQ(pool.call("echo x").text(), "x");
  ::signal(SIGCHLD, former);
}
TEST(ProcessPool_Unit, ForkedChildDestroysItsCopy_ParentGoesOn) {
  auto pool = std::make_unique<ProcessPool>(options());
  ASSERT_TRUE(pool->call("echo x").ok());
  std::atomic<int> called{0};
  const auto call_back = [&] {  // by a thread that the child has not got
    const int before = called;
    pool->submit("echo x").then([&](const Result&) { ++called; });
    return comes_true([&] { return called == before + 1; });
  };
  EXPECT_TRUE(call_back());
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(10);
    pool.reset();
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_TRUE(call_back());
  EXPECT_EQ(pool->call("echo x").text(), "x");
}
// A process with a pool that serves one end of a socket pair; this process has the other end.
class ServingProcess {
 public:
  explicit ServingProcess(void (*then)(ProcessPool&) = [](ProcessPool&) {}) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
    child_ = ::fork();
    if (child_ == 0) {
      ::close(ends[1]);
      ProcessPool pool(options());
      pool.serve(ends[0]);
      then(pool);
      ::pause();
    }
    ::close(ends[0]);
    socket_ = ends[1];
  }
  ~ServingProcess() {
    kill();
    EXPECT_EQ(::waitpid(child_, nullptr, 0), child_);
  }
  ServingProcess(const ServingProcess&) = delete;
  ServingProcess& operator=(const ServingProcess&) = delete;

  // For an AttachedClient, which closes it.
  [[nodiscard]] int socket() const { return socket_; }
  void kill() const { ::kill(child_, SIGKILL); }

 private:
  pid_t child_ = 0;
  int socket_ = -1;
};
// The pool's process has forked a child that did not exec and has a copy of the socket.
TEST(ProcessPool_Unit, PoolGoneButForkedChildLives_AttachedClientFails) {
  const ServingProcess pool([](ProcessPool& served) {
    static_cast<void>(served.call("echo up"));
    if (::fork() == 0) {
      ::sleep(30);
      ::_exit(0);
    }
  });
  process::AttachedClient attached(pool.socket());
  ASSERT_TRUE(attached.ok());
  ASSERT_EQ(attached.client().submit("echo y").get().text(), "y");
  Future hangs = attached.client().submit("hang");
  pool.kill();
  EXPECT_TRUE(hangs.wait_for(10s));
  EXPECT_EQ(hangs.get().failure().kind, FailureKind::kNoWorker);
}
// The process of pool and supervisor is killed: its workers die, too.
TEST(ProcessPool_Unit, ClientKilled_WorkersDieWithIt) {
  int pipe_ends[2];
  ASSERT_EQ(::pipe2(pipe_ends, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ProcessPoolOptions how = options();
    how.min_workers = 2;
    ProcessPool pool(how);
    Future hangs = pool.submit("hang");
    static_cast<void>(pool.call("echo up"));
    comes_true([&] { return pool.worker_pids().size() == 2; });
    const std::vector<int> pids = pool.worker_pids();
    [[maybe_unused]] const ssize_t written = ::write(pipe_ends[1], pids.data(), 2 * sizeof(int));
    ::pause();
  }
  int pids[2] = {};
  ASSERT_EQ(::read(pipe_ends[0], pids, sizeof pids), static_cast<ssize_t>(sizeof pids));
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  for (const int pid : pids) EXPECT_TRUE(comes_true([&] { return is_gone(pid); })) << pid;
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);
}

}  // namespace
}  // namespace freehold
