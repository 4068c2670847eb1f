// SPDX-License-Identifier: MIT
// Whether threads have ended or run, and futexes, as the system answers; errno stays as it was.
#include <dlfcn.h>
#include <gnu/lib-names.h>
#include <unistd.h>

#include "freehold/os/libc.hpp"
#include "freehold/os/system_call.hpp"
#include "freehold/os/threads.hpp"
#include "tests/support/test.hpp"

// The program's own, which find_libc() passes over.
extern "C" int sched_getcpu() noexcept { return -7; }

namespace freehold::os {
namespace {

#if !defined(FREEHOLD_SANITIZER_MAPS)  // beside which the linker's choice stays
TEST(Libc, ProgramHasOneOfItsOwn_FindsLibcs) {
  EXPECT_EQ(Libc::sched_getcpu(), -7);
  find_libc();
  EXPECT_GE(Libc::sched_getcpu(), 0);
  void* const libc = ::dlopen(LIBC_SO, RTLD_LAZY | RTLD_NOLOAD);
  ASSERT_NE(libc, nullptr);
  EXPECT_EQ(reinterpret_cast<void*>(Libc::pthread_create.address()), ::dlsym(libc, "pthread_create"));
  EXPECT_EQ(reinterpret_cast<void*>(Libc::pthread_join.address()), ::dlsym(libc, "pthread_join"));
  EXPECT_EQ(reinterpret_cast<void*>(Libc::clock_gettime.address()), ::dlsym(libc, "clock_gettime"));
}
#endif

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

TEST(Futex, OtherValueOrDeadlinePassed_ReturnsAndErrnoIsKept) {
  std::atomic<std::uint32_t> word{1};
  errno = EDOM;
  Futex::wait(&word, 0, FutexScope::kProcess);
  Futex::wait(&word, 0, FutexScope::kShared);
  Futex::wait(&word, 1, FutexScope::kProcess, 1'000'000);
  Futex::wait_until(&word, 1, 0);
  Futex::wait_until(&word, 1, INT64_MIN);
  EXPECT_EQ(errno, EDOM);
}

}  // namespace
}  // namespace freehold::os
