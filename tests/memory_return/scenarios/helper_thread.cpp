// SPDX-License-Identifier: MIT
// The thread that Freehold may add to a program that has threads: at most one, deaf to signals, not in children, not when
// forbidden, asleep when there is nothing to give back.
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include <fstream>

#include "tests/memory_return/scenarios/probe.hpp"

namespace freehold::test {
namespace {

void use_much(std::size_t blocks_of_kib = 150'000) {
  Table<void*> blocks(blocks_of_kib);  // not kept: it would be shared with children
  for (std::size_t i = 0; i < blocks_of_kib; ++i) blocks[i] = allocate_written(kKiB);
  for (std::size_t i = 0; i < blocks_of_kib; ++i) CApi::deallocate(blocks[i]);
}

unsigned long long field_of(pid_t thread, const char* field, int base) {
  char file[64];
  std::snprintf(file, sizeof file, "/proc/self/task/%d/status", thread);
  unsigned long long value = 0;
  for_each_line(file, [&](const char* line) {
    if (std::strncmp(line, field, std::strlen(field)) == 0) value = std::strtoull(line + std::strlen(field), nullptr, base);
  });
  return value;
}

// Every signal but those that cannot be blocked, and the two that the C library keeps for itself.
bool blocks_all_signals(pid_t thread) {
  constexpr unsigned long long kExcepted =
      1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1) | 1ull << (32 - 1) | 1ull << (33 - 1);
  return (field_of(thread, "SigBlk:", 16) | kExcepted) == ~0ull;
}

SCENARIO(helper_thread_gives_back) {
  std::array<pid_t, 256> extra;
  const pid_t own = start_sleeper();
  const double used = [] {
    use_much();
    return private_mib();
  }();
  std::size_t most = 0;
  bool deaf = true;
  for (int i = 0; i < 30; ++i) {
    const std::size_t n = list_extra(own, extra);
    most = std::max(most, n);
    for (std::size_t k = 0; k < n; ++k) deaf = deaf && blocks_all_signals(extra[k]);
    ::usleep(100'000);
  }
  const double resident = private_mib();
  // All is given back: from now on it sleeps.
  const std::size_t n = list_extra(own, extra);
  unsigned long long before = 0, after = 0;
  for (std::size_t k = 0; k < n; ++k) before += field_of(extra[k], "voluntary_ctxt_switches:", 10);
  ::usleep(3'000'000);
  for (std::size_t k = 0; k < n; ++k) after += field_of(extra[k], "voluntary_ctxt_switches:", 10);
  figure("used_mib", used);
  figure("resident_mib", resident);
  figure("extra_threads", static_cast<double>(most));
  figure("all_signals_blocked", deaf);
  figure("wakeups_when_idle", static_cast<double>(after - before));
}

// After fork, parent and child give memory back as before; a child without threads has one thread.
SCENARIO(helper_thread_and_fork) {
  start_sleeper();
  use_much();
  ::usleep(1'000'000);  // the thread, if there is one, is there
  const pid_t child = ::fork();
  require(child >= 0, "fork");
  if (child == 0) {
    require(count_threads() == 1, "the child of fork has a thread that it did not make");
    for (int i = 0; i < 10'000; ++i) CApi::deallocate(allocate_written(static_cast<std::size_t>(i % 1000) + 1));
    require(count_threads() == 1, "the child got a thread though it has nothing to give back");
    start_sleeper();
    use_much();
    ::usleep(4'000'000);
    figure("child_resident_mib", private_mib());
    std::exit(0);
  }
  use_much();
  ::usleep(4'000'000);
  const double resident = private_mib();
  int status = 0;
  require(::waitpid(child, &status, 0) == child && status == 0, "the child failed");
  figure("resident_mib", resident);
}

[[nodiscard]] bool has_main_ended() {
  std::string word;
  std::ifstream stat("/proc/self/task/" + std::to_string(::getpid()) + "/stat");
  for (int i = 0; i < 3; ++i) stat >> word;
  return word == "Z";
}

// main ends by pthread_exit: the process ends with the last thread that the program made.
SCENARIO(helper_thread_last_to_live) {
  std::thread([] {
    for (std::size_t i = 0; i < 100 && !has_main_ended(); ++i) ::usleep(10'000);
    use_much();
    figure("threads", static_cast<double>(count_threads()));  // main is one of them
    ::usleep(1'500'000);
  }).detach();
  pthread_exit(nullptr);
}

void* run_and_leave(void*) {
  use_much(20'000);
  return nullptr;
}

// A program whose threads come and go keeps no more than one of ours.
SCENARIO(helper_thread_beside_short_threads) {
  std::size_t most = 0;
  for (int i = 0; i < 20; ++i) {
    pthread_t thread;
    require(pthread_create(&thread, nullptr, run_and_leave, nullptr) == 0, "pthread_create");
    pthread_join(thread, nullptr);
    ::usleep(50'000);
    most = std::max(most, count_threads() - 1);
  }
  figure("extra_threads", static_cast<double>(most));
}

}  // namespace
}  // namespace freehold::test
