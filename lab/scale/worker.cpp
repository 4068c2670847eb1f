// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <stdexcept>

#include "freehold/thread_alloc/owner_pages_heap.hpp"
#include "lab/experiment/one_cpu.hpp"
#include "lab/scale/block_tests.hpp"
#include "lab/scale/job.hpp"
#include "lab/scale/workloads.hpp"
#include "tools/support/library.hpp"

namespace freehold::lab::scale {
namespace {

struct ProcessMalloc {
  static void* allocate(std::size_t bytes) { return std::malloc(bytes); }
  static void deallocate(void* block) { std::free(block); }
};
using OwnerArticle = thread_alloc::OwnerPagesHeap<thread_alloc::ArticlePages<thread_alloc::SystemUpstream>>;
using OwnerMutex = thread_alloc::OwnerPagesHeap<thread_alloc::MutexPages<thread_alloc::SystemUpstream>>;
using OwnerLockFree = thread_alloc::OwnerPagesHeap<thread_alloc::LockFreePages<thread_alloc::SystemUpstream>>;

template <class Blocks>
Body block_test(const Job& job) {
  if (job.test == Workload::kIsolation) return [job](GroupWorker& worker) { return isolation<Blocks>(job, worker); };
  auto rings = std::make_shared<std::vector<std::unique_ptr<BlockRing>>>();
  for (std::uint32_t pair = 0; pair < job.workers / 2; ++pair) rings->push_back(std::make_unique<BlockRing>());
  return [job, rings](GroupWorker& worker) { return handover<Blocks>(job, worker, *rings); };
}

Body block_test_of_source(const Job& job) {
  switch (job.source) {
    case Source::kMalloc: return block_test<ProcessMalloc>(job);
    case Source::kOwnerArticle: return block_test<OwnerArticle>(job);
    case Source::kOwnerMutex: return block_test<OwnerMutex>(job);
    case Source::kOwnerLockFree: return block_test<OwnerLockFree>(job);
  }
  __builtin_unreachable();
}

Body memory_body(const Job& job) {
  if (job.test == Workload::kOwnMemory) {
    return [job](GroupWorker& worker) {
      std::vector<std::uint64_t> own(kMemoryBuffer);
      return memory(job, worker, own);
    };
  }
  // Processes that are forked write to copies.
  return [job, shared = std::make_shared<std::vector<std::uint64_t>>(kMemoryBuffer)](GroupWorker& worker) {
    return memory(job, worker, *shared);
  };
}

}  // namespace

Body body_of(const Job& job) {
  switch (job.test) {
    case Workload::kCompute: return [job](GroupWorker& worker) { return compute(job, worker); };
    case Workload::kAllocate: return [job](GroupWorker& worker) { return allocate(job, worker); };
    case Workload::kMixed: return [job](GroupWorker& worker) { return mixed(job, worker); };
    case Workload::kMemory:
    case Workload::kOwnMemory: return memory_body(job);
    case Workload::kObject: return [job](GroupWorker& worker) { return object(job, worker); };
    case Workload::kScoped: return [job](GroupWorker& worker) { return scoped(job, worker); };
    case Workload::kReserved: return [job](GroupWorker& worker) { return reserved(job, worker); };
    case Workload::kWorkerHeap: return [job](GroupWorker& worker) { return worker_heap(job, worker); };
    case Workload::kLocked: return [job](GroupWorker& worker) { return locked(job, worker); };
    case Workload::kIsolation:
    case Workload::kHandover: return block_test_of_source(job);
  }
  __builtin_unreachable();
}

Report Job::run() const {
  if (one_cpu) stay_on_this_cpu();
  Report report;
  note_malloc_library(report.malloc_library);
  if (mode == Mode::kPool)
    run_in_pool(*this, report);
  else if (mode == Mode::kSpawn)
    run_spawning(*this, report);
  else
    run_group(mode, workers, body_of(*this), report);
  return report;
}

// A worker that needs fifty times its time is not slow but stuck; ten seconds are for machines that are busy.
std::chrono::seconds Job::limit() const { return std::chrono::seconds(10 + 50 * milliseconds / 1000); }

std::string Job::complaint(const Report& report) const {
  std::string why = wrong_malloc(library, report.malloc_library);
  if (why.empty() && report.correct != 1) why = "the workers computed wrong results: their memory was damaged";
  return why;
}

std::string Job::place() const { return fmt::format("{} ({})", name_of(test), name_of(mode)); }
std::string Job::text() const { return fmt::format("{}, {} {}, {}", name_of(test), workers, name_of(mode), subject); }

std::uint64_t Job::operations() const {
  constexpr std::uint64_t kOfAUnit[] = {kComputeRounds, kListNodes, kMixedNodes,      kMemoryWords,
                                        kMemoryWords,   kListNodes, kListNodes,       kListNodes,
                                        kListNodes,     kListNodes, kIsolationBlocks, kHandoverBlocks};
  return iterations * units * kOfAUnit[static_cast<std::size_t>(test)];
}

std::string_view operation_name(Workload test) {
  constexpr std::string_view kNames[] = {"round", "node", "node", "word", "word",  "node",
                                         "node",  "node", "node", "node", "block", "block"};
  return kNames[static_cast<std::size_t>(test)];
}

}  // namespace freehold::lab::scale
