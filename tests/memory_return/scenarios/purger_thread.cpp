// SPDX-License-Identifier: MIT
// The purger thread beside what a program does with its process: locked memory, fork, threads that come and go, main's end
// by pthread_exit, setuid; and memory that is freed by the last call that the program makes.
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "tests/memory_return/scenarios/probe.hpp"

namespace freehold::test {
namespace {

double process_cpu_seconds() { return seconds_of(CLOCK_PROCESS_CPUTIME_ID); }

// CPU time while no thread calls for so long is the purger thread's.
double cpu_seconds_in_silence(double seconds) {
  const double before = process_cpu_seconds();
  ::usleep(static_cast<useconds_t>(seconds * 1e6));
  return process_cpu_seconds() - before;
}

std::size_t count_extra(pid_t own) {
  std::array<pid_t, 256> extra;
  return list_extra(own, extra);
}

// Allocates and writes so many blocks of a MiB, then frees them all.
void saw(std::size_t mib) {
  Table<void*> blocks(mib);
  for (void*& block : blocks) block = allocate_written(kMiB);
  for (void* block : blocks) CApi::deallocate(block);
}

void end_by_status(int status, const char* what) {
  require(!(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM), std::string(what) + " hung");
  require(status == 0, std::string(what) + " ended with status " + std::to_string(status));
}

// ---- memory that cannot go back
// --------------------------------------------------------------------------------------------

// Returns whether all memory is locked from now on, with room for what the scenario needs.
bool lock_all_memory() {
  constexpr std::size_t kNeeded = 64 * kMiB;
  if (::mlockall(MCL_CURRENT | MCL_FUTURE) != 0) return false;
  void* const probe = ::mmap(nullptr, kNeeded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (probe == MAP_FAILED) return false;
  ::munmap(probe, kNeeded);
  return true;
}

// Free slots scattered over pages in use, and free pages that the system refuses to take.
SCENARIO(purger_thread_locked) {
  const pid_t own = start_sleeper();
  if (!lock_all_memory()) return figure("not_allowed", 1);
  for (int i = 0; i < 8; ++i) allocate_written(kMiB);
  constexpr std::size_t kBlocks = 6000, kFreed = 2300;
  Table<void*> blocks(kBlocks);
  for (void*& block : blocks) block = allocate_written(kKiB);
  for (std::size_t i = 0, freed = 0; freed < kFreed; ++i)
    if (i % 32 != 0) {
      CApi::deallocate(blocks[i]);
      ++freed;
    }
  ::usleep(1'000'000);  // the delay is over
  figure("extra_threads", static_cast<double>(count_extra(own)));
  figure("cpu_seconds", cpu_seconds_in_silence(2));
  ::alarm(8);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  int status = 0;
  require(child > 0 && ::waitpid(child, &status, 0) == child, "fork");
  end_by_status(status, "the child");
  figure("forked", 1);
}

// With a delay of ages (the environment's) nothing is ever due.
SCENARIO(purger_thread_waits_for_ages) {
  const pid_t own = start_sleeper();
  for (int i = 0; i < 64; ++i) {
    void* const block = allocate_written(kMiB);
    if (i % 16 == 0) CApi::deallocate(block);
  }
  ::usleep(200'000);
  figure("extra_threads", static_cast<double>(count_extra(own)));
  figure("cpu_seconds", cpu_seconds_in_silence(2));
}

// ---- the program's end
// -----------------------------------------------------------------------------------------------------

constexpr std::size_t kDeepBytes = 512 * kKiB;

void use_deep_stack() {
  std::array<char, kDeepBytes> frame;
  for (std::size_t i = kDeepBytes; i >= 4096; i -= 4096) opaque(frame.data())[i - 1] = 1;
}

pthread_barrier_t g_both_end;
std::atomic<bool> g_main_ends{false};
void* end_together(void*) {
  CApi::deallocate(allocate_written(100));
  while (!g_main_ends) ::usleep(1000);
  ::usleep(20'000);  // it has ended
  pthread_barrier_wait(&g_both_end);
  return nullptr;
}

// main ends by pthread_exit before two workers that end at the same time.
[[noreturn]] void end_with_two_workers() {
  ::alarm(20);
  require(std::atexit(use_deep_stack) == 0, "atexit");
  pthread_barrier_init(&g_both_end, nullptr, 2);
  for (int i = 0; i < 2; ++i) {
    pthread_t worker;
    require(pthread_create(&worker, nullptr, end_together, nullptr) == 0, "pthread_create");
    pthread_detach(worker);
  }
  ::usleep(5'000);                      // both have a cache: the purger thread may come
  for (int i = 0; i < 3; ++i) saw(40);  // some of it is kept for a fourth time: the thread gives it back when it ends
  g_main_ends = true;
  pthread_exit(nullptr);
}

SCENARIO(purger_thread_two_workers_end) {
  int good = 0;
  for (int i = 0; i < 20; ++i) {
    const pid_t child = ::fork();
    require(child >= 0, "fork");
    if (child == 0) end_with_two_workers();
    int status = 0;
    require(::waitpid(child, &status, 0) == child, "waitpid");
    if (status != 0) std::printf("# process %d ended with status %d\n", i, status);
    std::fflush(stdout);  // or the next process prints it again
    good += status == 0;
  }
  figure("ended_well", good);
}

// ---- fork
// ------------------------------------------------------------------------------------------------------------------

// The child has one thread, so its memory is not given back in time.
SCENARIO(purger_thread_child_saws) {
  constexpr std::size_t kPeakMib = 600;
  const pid_t own = start_sleeper();
  saw(kPeakMib);
  ::usleep(700'000);
  figure("extra_threads", static_cast<double>(count_extra(own)));
  const pid_t child = ::fork();
  require(child >= 0, "fork");
  if (child == 0) {
    for (int i = 0; i < 3; ++i) saw(kPeakMib);
    figure("child_resident_mib", private_mib());
    ::_exit(0);
  }
  int status = 0;
  require(::waitpid(child, &status, 0) == child, "waitpid");
  end_by_status(status, "the child");
}

// ---- threads that come and go
// ----------------------------------------------------------------------------------------------

long page_faults() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

void* saw_40_mib(void*) {
  saw(40);
  return nullptr;
}

void spawn_and_join(void* (*work)(void*)) {
  pthread_t worker;
  require(pthread_create(&worker, nullptr, work, nullptr) == 0, "pthread_create");
  pthread_join(worker, nullptr);
}

SCENARIO(purger_thread_spawn_join_faults) {
  for (int i = 0; i < 800; ++i) allocate_written(kMiB);
  const long before = page_faults();
  for (int i = 0; i < 100; ++i) spawn_and_join(saw_40_mib);
  figure("faults", static_cast<double>(page_faults() - before));
}

// The thread that is left sleeps from then on.
SCENARIO(purger_thread_alone_keeps_little) {
  CApi::deallocate(allocate_written(kKiB));  // it has a cache
  spawn_and_join([](void*) -> void* {
    for (int i = 0; i < 5; ++i) saw(40);
    return nullptr;
  });
  figure("resident_mib", private_mib());
}

// A program whose threads are all joined has one thread: unshare and setns depend on it. The system may still be busy with
// the joined thread's own end, so a second look counts.
void* saw_200_mib(void*) {
  saw(200);
  return nullptr;
}

SCENARIO(purger_thread_alone_after_join) {
  for (int i = 0; i < 100; ++i) allocate_written(kMiB);
  int second_looks = 0, not_alone = 0;
  for (int i = 0; i < 20; ++i) {
    spawn_and_join(saw_200_mib);
    if (count_threads() == 1) continue;
    ++second_looks;
    ::usleep(20'000);
    not_alone += count_threads() != 1;
  }
  figure("second_looks", second_looks);
  figure("not_alone", not_alone);
}

// ---- the last call
// ---------------------------------------------------------------------------------------------------------

constexpr std::size_t kLiveMib = 512;

// `last_calls`: what the program does with `n` blocks before it falls silent, beside kLiveMib of others.
template <class LastCalls>
void fall_silent_after(std::size_t n, std::size_t bytes, std::size_t bytes_left, LastCalls&& last_calls) {
  const double at_start = private_mib();
  const pid_t own = start_sleeper();
  for (std::size_t i = 0; i < kLiveMib; ++i) allocate_written(kMiB);
  ::usleep(1'500'000);  // the purger thread sleeps
  Table<void*> blocks(n);
  for (void*& block : blocks) block = allocate_written(bytes);
  ::usleep(500'000);
  figure("extra_threads", static_cast<double>(count_extra(own)));
  for (void* block : blocks) last_calls(block);
  ::usleep(3'000'000);
  figure("kept_mib", private_mib() - at_start - kLiveMib - static_cast<double>(n * bytes_left) / kMiB);
}

SCENARIO(purger_thread_last_call_frees) {
  fall_silent_after(1, 30 * kMiB, 0, [](void* block) { CApi::deallocate(block); });
}
SCENARIO(purger_thread_last_call_shrinks) {
  fall_silent_after(1, 28 * kMiB, 4 * kMiB,
                    [](void* block) { require(CApi::reallocate(block, 4 * kMiB) != nullptr, "realloc"); });
}
SCENARIO(purger_thread_last_calls_shrink) {
  constexpr std::size_t kLeft = 40'000;
  fall_silent_after(25, kMiB, kLeft, [](void* block) { require(CApi::reallocate(block, kLeft) != nullptr, "realloc"); });
}

}  // namespace
}  // namespace freehold::test
