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

// Calls made by nobody for so long are the purger thread's.
double cpu_seconds_in_silence(double seconds) {
  const double before = process_cpu_seconds();
  ::usleep(static_cast<useconds_t>(seconds * 1e6));
  return process_cpu_seconds() - before;
}

std::size_t count_extra(pid_t own) {
  std::array<pid_t, 256> extra;
  return list_extra(own, extra);
}

void end_by_status(int status, const char* what) {
  require(!(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM), std::string(what) + " hung");
  require(status == 0, std::string(what) + " ended with status " + std::to_string(status));
}

// ---- memory that cannot go back
// --------------------------------------------------------------------------------------------

// Whether all memory is locked from now on, with room for what the scenario needs.
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

}  // namespace
}  // namespace freehold::test
