// SPDX-License-Identifier: MIT
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "freehold/process.hpp"
#include "freehold/process/worker/worker_protocol.hpp"
#include "lab/experiment/job_words.hpp"
#include "lab/scale/job.hpp"

namespace freehold::lab::scale {
namespace {
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// A task: one iteration. Without units it only returns the worker's process id.
struct Order {
  Workload test = Workload::kCompute;
  std::uint64_t units = 0;
};
struct Answer {
  int pid = 0;
  bool correct = false;
};

constexpr auto kGreeting = 2ms;  // long enough for another worker to take the next task
constexpr auto kStartTimeout = 10s;

std::string_view text_of(const Order& order) { return {reinterpret_cast<const char*>(&order), sizeof order}; }

Answer answer_of(const process::Result& result) {
  Answer answer;
  if (!result.ok() || result.bytes().size() != sizeof answer) throw std::runtime_error("a task of the pool failed");
  std::memcpy(&answer, result.bytes().data(), sizeof answer);
  return answer;
}

bool run_iteration(const Order& order) {
  pthread_barrier_t alone;
  ::pthread_barrier_init(&alone, nullptr, 1);
  GroupWorker worker(0, alone);
  const Job job{
      .test = order.test, .mode = {}, .source = {}, .workers = 1, .iterations = 1, .units = order.units, .one_cpu = false};
  const bool correct = body_of(job)(worker);
  ::pthread_barrier_destroy(&alone);
  return correct;
}

int run_task(const void* input, std::size_t input_bytes, void* output, std::size_t capacity, std::size_t* output_bytes) {
  Order order;
  Answer answer{.pid = ::getpid()};
  if (input_bytes != sizeof order || capacity < sizeof answer) return 1;
  std::memcpy(&order, input, sizeof order);
  if (order.units == 0) std::this_thread::sleep_for(kGreeting);
  answer.correct = order.units == 0 || run_iteration(order);
  std::memcpy(output, &answer, sizeof answer);
  *output_bytes = sizeof answer;
  return 0;
}

// Until every worker has answered once.
std::set<int> greet_all(ProcessPool& pool, std::uint32_t workers) {
  const auto end = Clock::now() + kStartTimeout;
  std::set<int> pids;
  while (pids.size() < workers) {
    if (!pool.ok() || Clock::now() > end) throw std::runtime_error("the pool's workers do not start: " + pool.error());
    std::vector<process::Future> greetings;
    for (std::uint32_t i = 0; i < workers; ++i) greetings.push_back(pool.submit(text_of(Order{})));
    for (process::Future& greeting : greetings)
      if (greeting.valid()) pids.insert(answer_of(greeting.get()).pid);
  }
  return pids;
}

std::uint64_t cpu_ns(const std::set<int>& pids) {
  std::uint64_t sum = 0;
  for (const int pid : pids) {
    clockid_t clock{};
    timespec time{};
    if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &time) != 0) continue;
    sum += static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
  }
  return sum;
}

}  // namespace

void run_in_pool(const Job& job, GroupReport& report) {
  ProcessPoolOptions options;
  options.command = {std::filesystem::read_symlink("/proc/self/exe").string(), kPoolWorkerCommand};
  options.min_workers = options.max_workers = job.workers;
  options.max_open_tasks = 2 * job.workers;
  options.max_input_bytes = options.max_output_bytes = 4096;
  ProcessPool pool(options);
  const std::set<int> pids = greet_all(pool, job.workers);
  const std::uint64_t cpu_before = cpu_ns(pids);
  const Order order{.test = job.test, .units = job.units};
  const auto client = [&](GroupWorker& worker) {
    bool correct = true;
    worker.start();
    for (std::uint32_t i = share_of(job.iterations, job.workers, worker.index()); i > 0; --i) {
      const process::Result result = pool.call(text_of(order));
      correct &= result.ok() && answer_of(result).correct;
    }
    worker.finish();
    return correct;
  };
  run_group(Mode::kPool, job.workers, client, report);
  report.cpu_ns += cpu_ns(pids) - cpu_before;
  for (const int pid : pids) report.peak_rss_bytes += peak_rss_bytes(pid);
}

void run_spawning(const Job& job, GroupReport& report) {
  const auto client = [&](GroupWorker& worker) {
    bool correct = true;
    worker.start();
    for (std::uint32_t i = share_of(job.iterations, job.workers, worker.index()); i > 0; --i) {
      std::vector<std::string> words{"freehold", kDocumentCommand, word_of(job.test), word_of(job.units)};
      std::vector<char*> argv;
      for (std::string& word : words) argv.push_back(word.data());
      argv.push_back(nullptr);
      pid_t pid = -1;
      int status = 0;
      correct &= ::posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, argv.data(), environ) == 0 &&
                 ::waitpid(pid, &status, 0) == pid && status == 0;
    }
    worker.finish();
    return correct;
  };
  run_group(Mode::kSpawn, job.workers, client, report);
  rusage children{};
  ::getrusage(RUSAGE_CHILDREN, &children);
  for (const timeval& time : {children.ru_utime, children.ru_stime})
    report.cpu_ns +=
        static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_usec) * 1000;
  report.peak_rss_bytes += static_cast<std::uint64_t>(children.ru_maxrss) * 1024 * job.workers;
}

int document_main(const std::vector<std::string>& words) {
  Order order;
  read_word(words.at(0), order.test);
  read_word(words.at(1), order.units);
  return run_iteration(order) ? 0 : 1;
}

int pool_worker_main() {
  process::Worker worker;
  if (!worker.ok()) return static_cast<int>(process::WorkerExit::kNoTable);
  return worker.run(run_task);
}

}  // namespace freehold::lab::scale
