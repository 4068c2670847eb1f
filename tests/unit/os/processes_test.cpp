// SPDX-License-Identifier: MIT
// Process handles, thread ids, futexes and the membarrier, as the system answers them.
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include "freehold/os/futex.hpp"
#include "freehold/os/membarrier.hpp"
#include "freehold/os/process_handle.hpp"
#include "freehold/os/threads.hpp"

namespace freehold::os {
namespace {

TEST(ProcessHandle, SignalledProcess_EndsAndTheHandleSaysSo) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    for (;;) ::pause();
  }
  const int handle = open_process(pid);
  ASSERT_GE(handle, 0);
  pollfd end{handle, POLLIN, 0};
  EXPECT_EQ(::poll(&end, 1, 0), 0);
  EXPECT_TRUE(signal_process(handle, SIGKILL));
  EXPECT_EQ(::poll(&end, 1, 60'000), 1);
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  errno = 0;
  EXPECT_FALSE(signal_process(handle, SIGKILL));
  EXPECT_EQ(errno, ESRCH);
  ::close(handle);
}

TEST(ThreadId, DiffersByThreadAndIsTheProcessesInTheFirst) {
  pid_t other = 0;
  std::thread([&] { other = thread_id(); }).join();
  EXPECT_EQ(thread_id(), ::getpid());
  EXPECT_NE(other, thread_id());
}

TEST(ThreadHasEnded, RunningAndEndedThread_ErrnoIsKept) {
  std::atomic<pid_t> id{0};
  std::atomic<bool> stop{false};
  std::thread other([&] {
    id = thread_id();
    id.notify_one();
    stop.wait(false);
  });
  id.wait(0);
  errno = EDOM;
  EXPECT_FALSE(thread_has_ended(::getpid(), id));
  stop = true;
  stop.notify_one();
  other.join();
  for (int i = 0; i < 10'000 && !thread_has_ended(::getpid(), id); ++i) std::this_thread::yield();
  EXPECT_TRUE(thread_has_ended(::getpid(), id));
  EXPECT_EQ(errno, EDOM);
}

TEST(StampOfSleepingThread, ChangesWhenItHasRunAndIsZeroWhileItRuns) {
  std::atomic<pid_t> id{0};
  std::atomic<unsigned> turn{0};
  std::thread other([&] {
    id = thread_id();
    for (unsigned seen = 0; seen < 2; ++seen) turn.wait(seen);
  });
  while (id == 0) std::this_thread::yield();
  const auto stamp_at_rest = [&] {
    std::uint64_t stamp = 0;
    for (int i = 0; i < 10'000 && stamp == 0; ++i) {
      stamp = stamp_of_sleeping_thread(id);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (stamp != stamp_of_sleeping_thread(id)) stamp = 0;  // it had not come to rest
    }
    return stamp;
  };
  errno = EDOM;
  const std::uint64_t before = stamp_at_rest();
  EXPECT_EQ(errno, EDOM);
  EXPECT_NE(before, 0U);
  EXPECT_EQ(stamp_of_sleeping_thread(id), before) << "it has slept all the time";
  turn = 1;
  turn.notify_one();
  std::uint64_t after = before;
  for (int i = 0; i < 10'000 && after == before; ++i) after = stamp_at_rest();
  EXPECT_GT(after, before);
  EXPECT_EQ(stamp_of_sleeping_thread(thread_id()), 0U) << "it runs: it asks";
  turn = 2;
  turn.notify_one();
  other.join();
  errno = EDOM;
  EXPECT_EQ(stamp_of_sleeping_thread(0), 0U);
  EXPECT_EQ(stamp_of_sleeping_thread(-1), 0U);
  EXPECT_EQ(stamp_of_sleeping_thread(::getppid()), 0U) << "another process's";
  EXPECT_EQ(errno, EDOM);
}

TEST(Futex, WaitsForLock_OnlyForAHeldAndAwaitedWordOrAPriorityLock) {
  for (const unsigned long flags : {0UL, static_cast<unsigned long>(FUTEX_PRIVATE_FLAG)}) {
    for (const unsigned long wait : {FUTEX_WAIT, FUTEX_WAIT_BITSET}) {
      EXPECT_TRUE(Futex::waits_for_lock(wait | flags, 2));
      EXPECT_FALSE(Futex::waits_for_lock(wait | flags, 1));
      EXPECT_FALSE(Futex::waits_for_lock(wait | flags, 0));
    }
    EXPECT_TRUE(Futex::waits_for_lock(FUTEX_LOCK_PI | flags, 0));
    EXPECT_FALSE(Futex::waits_for_lock(FUTEX_WAKE | flags, 2));
  }
}

TEST(Futex, OtherValueOrDeadlinePassed_ReturnsAndErrnoIsKept) {
  std::atomic<std::uint32_t> word{1};
  errno = EDOM;
  Futex::wait(&word, 0, FutexScope::kProcess);
  Futex::wait(&word, 0, FutexScope::kShared);
  const timespec soon{0, 1'000'000}, start{0, 0};
  Futex::wait(&word, 1, FutexScope::kProcess, &soon);
  Futex::wait_until(&word, 1, &start);
  EXPECT_EQ(errno, EDOM);
}

TEST(Futex, Sleepers_AreWoken) {
  for (const FutexScope scope : {FutexScope::kProcess, FutexScope::kShared}) {
    std::atomic<std::uint32_t> word{0};
    const auto sleep = [&] {
      while (word.load() == 0) Futex::wait(&word, 0, scope);
    };
    std::thread one(sleep), other(sleep);
    word.store(1);
    Futex::wake_one(&word, scope);
    Futex::wake_all(&word, scope);
    one.join();
    other.join();
  }
}

TEST(Membarrier, Registered_RunsInAllThreads) {
  if (!Membarrier::register_process()) GTEST_SKIP() << "the kernel has none";
  EXPECT_TRUE(Membarrier::run_in_all_threads());
}

}  // namespace
}  // namespace freehold::os
