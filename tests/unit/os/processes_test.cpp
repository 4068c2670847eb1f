// SPDX-License-Identifier: MIT
// Process handles, thread ids, futexes and the membarrier, as the system answers them.
#include <gtest/gtest.h>
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
