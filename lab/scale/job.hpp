// SPDX-License-Identifier: MIT
// One measurement of `freehold scale`: Job describes it, Report has its result. It runs in a fresh process (`freehold
// scale-worker`, the same executable) under one allocator.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "freehold/process/table/task_word.hpp"
#include "tools/support/worker_group.hpp"

namespace freehold::lab::scale {

// The scaling article's four workloads; the fourth with separate memory for each worker; the second one with the article's
// remedies, a heap for each list, the same by a scope, reserved and used again, a heap for each worker; a component with one
// lock inside; the thread-local article's two tests.
enum class Workload : std::uint8_t {
  kCompute,
  kAllocate,
  kMixed,
  kMemory,
  kOwnMemory,
  kObject,
  kScoped,
  kReserved,
  kWorkerHeap,
  kLocked,
  kIsolation,
  kHandover
};
inline constexpr Names<Workload, 12> kWorkloads{{"compute", "allocate", "mixed", "memory", "own-memory", "object", "scoped",
                                                 "reserved", "worker-heap", "locked", "isolation", "handover"}};
[[nodiscard]] constexpr const auto& names_of(Workload) { return kWorkloads; }
// The allocator of the thread-local article's tests: the process's malloc, which may be a preloaded library, or the
// article's allocator over the process's malloc. That exists as published, and with batched remote frees in either list.
enum class Source : std::uint8_t { kMalloc, kOwnerArticle, kOwnerMutex, kOwnerLockFree };
inline constexpr Names<Source, 4> kSources{{"malloc", "owner-article", "owner-mutex", "owner-lock-free"}};
[[nodiscard]] constexpr const auto& names_of(Source) { return kSources; }
using tools::name_of;

// All but the last two run as threads and as processes; the two tests of the thread-local article are about threads.
[[nodiscard]] constexpr bool runs_as_processes(Workload test) { return test <= Workload::kLocked; }
// Scopes need Freehold's malloc.
[[nodiscard]] constexpr bool needs_freehold(Workload test) { return test == Workload::kScoped; }
// Tasks of a pool cannot keep memory or a heap from one task to the next.
[[nodiscard]] constexpr bool runs_in_a_pool(Workload test) { return test <= Workload::kMixed || test == Workload::kLocked; }
// An operation's name in tables: "round", "node", "word", "block".
[[nodiscard]] std::string_view operation_name(Workload test);

struct Report : GroupReport {
  static constexpr std::uint64_t kMagic = 0x65726f6373663031;
  std::uint64_t magic = kMagic;
  char malloc_library[480] = {};  // the file that malloc came from
};

// See lab/experiment/run.hpp.
struct Job {
  Workload test = Workload::kCompute;
  Mode mode = Mode::kThreads;
  Source source = Source::kMalloc;
  std::uint32_t workers = 1;
  std::uint32_t iterations = 24;  // shared by the workers; handover: by the pairs of workers
  std::uint64_t units = 1;        // units of work in an iteration; calibrated, the same for every allocator and worker count
  bool one_cpu = false;           // all workers share one CPU
  std::uint32_t milliseconds = 0;  // that one worker needs, about
  std::string subject = {};        // the name of the allocator
  std::string library = {};

  static constexpr const char* kWorker = "scale-worker";
  [[nodiscard]] static auto members() {
    return std::tuple{&Job::test, &Job::mode, &Job::source, &Job::workers, &Job::iterations, &Job::units, &Job::one_cpu};
  }
  [[nodiscard]] std::tuple<Workload, Mode, std::uint32_t> group() const { return {test, mode, workers}; }
  [[nodiscard]] Report run() const;
  [[nodiscard]] std::chrono::seconds limit() const;
  [[nodiscard]] std::string complaint(const Report& report) const;
  [[nodiscard]] std::string name() const { return subject; }
  [[nodiscard]] std::string place() const;
  [[nodiscard]] std::string text() const;
  // Operations (rounds, list nodes, words, blocks); the time per operation divides by them.
  [[nodiscard]] std::uint64_t operations() const;
};

// The iterations of participant `index` out of `participants`: equal shares, one more for the first ones.
[[nodiscard]] constexpr std::uint32_t share_of(std::uint32_t iterations, std::uint32_t participants, std::uint32_t index) {
  return iterations / participants + (index < iterations % participants ? 1 : 0);
}

// The work of one worker of the job.
[[nodiscard]] Body body_of(const Job& job);

// The scaling article's other solution: N threads submit their iterations to the N worker processes of a ProcessPool, one
// task for each iteration. The workers are this executable again, as `freehold scale-pool-worker`, with the same preloaded
// allocator.
inline constexpr const char* kPoolWorkerCommand = "scale-pool-worker";
inline constexpr std::uint32_t kMostPoolWorkers = process::TaskWord::kMaxWorkers;

// The time runs from the first submission to the last result; all workers are up before. CPU time and peak memory are the
// sums over clients and workers. Throws std::exception if the pool or a task fails.
void run_in_pool(const Job& job, GroupReport& report);
// Runs what the article rejects: N threads start a process for each iteration, `freehold scale-document TEST UNITS`.
inline constexpr const char* kDocumentCommand = "scale-document";
void run_spawning(const Job& job, GroupReport& report);

int pool_worker_main();
int document_main(const std::vector<std::string>& words);

}  // namespace freehold::lab::scale
