// SPDX-License-Identifier: MIT
#include "tools/support/worker_group.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace freehold::inline tools {
namespace {

// One clock for threads and processes.
std::uint64_t now_ns(clockid_t clock = CLOCK_MONOTONIC) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

// A worker's result for the parent, on a separate cache line; written once at the end.
struct alignas(64) Result {
  std::uint64_t started_ns;
  std::uint64_t finished_ns;
  std::uint64_t cpu_ns;
  bool correct;
};

// Memory that the group shares, across forks too: the barrier, then one Result for each worker.
class GroupMemory {
 public:
  explicit GroupMemory(std::uint32_t workers) : bytes_(sizeof(Result) * (workers + kHeader)), workers_(workers) {
    memory_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "shared memory");
    pthread_barrierattr_t attributes;
    ::pthread_barrierattr_init(&attributes);
    ::pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    ::pthread_barrier_init(&barrier(), &attributes, workers);
    ::pthread_barrierattr_destroy(&attributes);
  }
  ~GroupMemory() { ::munmap(memory_, bytes_); }
  GroupMemory(const GroupMemory&) = delete;
  GroupMemory& operator=(const GroupMemory&) = delete;

  pthread_barrier_t& barrier() { return *static_cast<pthread_barrier_t*>(memory_); }
  std::span<Result> results() { return {static_cast<Result*>(memory_) + kHeader, workers_}; }

 private:
  static constexpr std::size_t kHeader = 1;
  static_assert(sizeof(pthread_barrier_t) <= sizeof(Result) * kHeader);
  std::size_t bytes_;
  std::uint32_t workers_;
  void* memory_;
};

void work(GroupMemory& memory, std::uint32_t index, const Body& body) {
  GroupWorker worker(index, memory.barrier());
  const bool correct = body(worker);
  memory.results()[index] = {worker.started_ns(), worker.finished_ns(), worker.cpu_ns(), correct};
}

void run_threads(GroupMemory& memory, std::uint32_t workers, const Body& body) {
  std::vector<std::jthread> threads;
  threads.reserve(workers);
  try {
    for (std::uint32_t i = 0; i < workers; ++i) threads.emplace_back([&memory, &body, i] { work(memory, i, body); });
  } catch (const std::system_error& error) {
    std::fprintf(stderr, "cannot start %u threads: %s\n", workers, error.what());
    ::_exit(1);
  }
}

pid_t fork_worker(GroupMemory& memory, std::uint32_t index, const Body& body) {
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (child > 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  try {
    work(memory, index, body);
    ::_exit(0);
  } catch (...) {
    ::_exit(1);
  }
}

void run_processes(GroupMemory& memory, std::uint32_t workers, const Body& body, GroupReport& report) {
  for (std::uint32_t i = 0; i < workers; ++i) fork_worker(memory, i, body);
  for (std::uint32_t i = 0; i < workers; ++i) {
    int status = 0;
    struct rusage usage{};
    if (::wait4(-1, &status, 0, &usage) < 0) throw std::system_error(errno, std::generic_category(), "wait");
    // The other workers would wait at the barrier for ever; they die with this process.
    if (WIFSIGNALED(status)) throw std::runtime_error("a worker process died by signal " + std::to_string(WTERMSIG(status)));
    if (WEXITSTATUS(status) != 0) throw std::runtime_error("a worker process failed");
    report.peak_rss_bytes += static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
  }
}

}  // namespace

// VmHWM rather than ru_maxrss, which remembers the process before its exec.
std::uint64_t peak_rss_bytes(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoull(line.substr(6)) * 1024;
  }
  return 0;
}

void GroupWorker::start() noexcept {
  ::pthread_barrier_wait(&barrier_);
  cpu_started_ns_ = now_ns(CLOCK_THREAD_CPUTIME_ID);
  started_ns_ = now_ns();
}

void GroupWorker::finish() noexcept {
  finished_ns_ = now_ns();
  cpu_finished_ns_ = now_ns(CLOCK_THREAD_CPUTIME_ID);
}

void run_group(Mode mode, std::uint32_t workers, const Body& body, GroupReport& report) {
  GroupMemory memory(workers);
  if (mode != Mode::kProcesses) {
    run_threads(memory, workers, body);
    report.peak_rss_bytes = tools::peak_rss_bytes(::getpid());
  } else {
    run_processes(memory, workers, body, report);
  }
  const auto results = memory.results();
  for (const Result& result : results) report.cpu_ns += result.cpu_ns;
  report.elapsed_ns = std::ranges::max(results, {}, &Result::finished_ns).finished_ns -
                      std::ranges::min(results, {}, &Result::started_ns).started_ns;
  report.correct = std::ranges::all_of(results, &Result::correct) ? 1 : 0;
}

}  // namespace freehold::inline tools
