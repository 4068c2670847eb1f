// SPDX-License-Identifier: MIT
// Tasks in a pool whose component misbehaves on command: results, retries, deadlines, callbacks, the log.
#include <algorithm>
#include <array>
#include <atomic>
#include <coroutine>
#include <exception>
#include <fstream>
#include <mutex>
#include <optional>
#include <vector>

#include "tests/unit/process/process_pool_support.hpp"

namespace freehold {

const char* const process_test::kComponent = FREEHOLD_TEST_COMPONENT;
const char* const process_test::kWorkerProgram = FREEHOLD_WORKER_PROGRAM;

namespace {

using namespace process_test;

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
      EXPECT_EQ(result.error().kind, FailureKind::kNoTask);
    else if (i % 50 == 7)
      EXPECT_EQ(result.error(), (Failure{FailureKind::kComponent, 42}));
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
    EXPECT_EQ(task.get().error(), (Failure{FailureKind::kExit, 3}));
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
  EXPECT_EQ(made.submit("say out of luck").get().error(), (Failure{FailureKind::kExit, 3}));
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
  EXPECT_EQ(waits.get().error(), (Failure{FailureKind::kDeadline, 30}));
  EXPECT_EQ(runs.get().error(), (Failure{FailureKind::kDeadline, 60}));
  EXPECT_EQ(pool.submit("echo x", {.total_timeout = 10s}).get().text(), "x");
}
TEST(ProcessPool_Unit, OptionsOfATask_WhatIsLeftOutIsThePools) {
  ProcessPoolOptions how = options();
  how.run_timeout = 50ms;
  how.max_attempts = 1;
  how.retry = {.max_attempts = 3};
  ProcessPool pool(how);
  EXPECT_EQ(pool.call("hang", {.priority = process::Priority::kHigh}).error(), (Failure{FailureKind::kDeadline, 50}));
  const Deployed folder;
  EXPECT_TRUE(pool.call("refuse 7 " + folder.path("a"), {.submit_timeout = 1s}).ok()) << "the third run";
  EXPECT_TRUE(pool.call("sleep 200", {.run_timeout = process::Nanoseconds::max()}).ok());
}
TEST(ProcessPool_Unit, LimitOfZero_IsALimit) {
  ProcessPool pool(options());
  EXPECT_EQ(pool.submit("hang", {.run_timeout = 0ns, .max_attempts = 1}).get().error(),
            (Failure{FailureKind::kDeadline, 0}));
  EXPECT_EQ(pool.submit("hang", {.total_timeout = 0ns}).get().error().kind, FailureKind::kDeadline);
  EXPECT_TRUE(pool.drain(std::nullopt));
}
TEST(ProcessPool_Unit, ComponentRefuses_RunsAgainAfterItsDelay) {
  ProcessPoolOptions how = options();
  how.retry = {.max_attempts = 5, .delay = 60ms};
  ProcessPool pool(how);
  const Deployed folder;
  const auto begin = std::chrono::steady_clock::now();
  Future task = pool.submit("refuse 7 " + folder.path("a"));
  ASSERT_TRUE(comes_true([&] { return pool.stats().waiting == 1; }));
  EXPECT_EQ(pool.call("echo x").text(), "x");  // no caller waits for it
  EXPECT_TRUE(task.get().ok());
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 120ms);
  how.retry.delay = 1h;
  Future never = pool.submit("fail 7", {.total_timeout = 50ms, .retry = how.retry});
  EXPECT_EQ(never.get().error(), (Failure{FailureKind::kDeadline, 50}));
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
    ends.push_back(result.ok() ? std::string(result.text()) : text(result.error()));
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
  Future refused(FailureKind::kFull);
  refused.then([&](const Result& result) { EXPECT_EQ(result.error().kind, FailureKind::kFull); });
  pool.reset();
  EXPECT_EQ(ends.size(), 5u);
  EXPECT_EQ(std::ranges::count(ends, text(process::Failure{FailureKind::kNoWorker})), 3);
  for (const std::thread::id thread : threads) EXPECT_TRUE(thread == threads[0] && thread != std::this_thread::get_id());
}
// A coroutine that no caller waits for.
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
  sum += refused.error().kind == FailureKind::kTooLarge ? 1 : 100'000;
}
TEST(ProcessPool_Unit, Coroutines_AwaitTheirTasks) {
  ProcessPool pool(options());
  std::atomic<int> sum{0};
  for (int i = 0; i < 20; ++i) sum_of(pool, 50, sum);
  EXPECT_TRUE(comes_true([&] { return sum == 20 * (50 * 51 / 2 + 1); })) << sum;
}

}  // namespace
}  // namespace freehold
