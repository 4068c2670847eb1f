// SPDX-License-Identifier: MIT
#include "lab/scale/job.hpp"

#include "cli/support/arguments.hpp"
#include "lab/experiment/job_words.hpp"
#include "lab/scale/work_size.hpp"

namespace freehold::cli::scale {

std::string_view name_of(Workload test) {
  switch (test) {
    case Workload::kCompute: return "compute";
    case Workload::kAllocate: return "allocate";
    case Workload::kMixed: return "mixed";
    case Workload::kMemory: return "memory";
    case Workload::kObject: return "object";
    case Workload::kLocked: return "locked";
    case Workload::kIsolation: return "isolation";
    case Workload::kHandover: return "handover";
  }
  __builtin_unreachable();
}

std::string_view name_of(Source source) {
  switch (source) {
    case Source::kMalloc: return "malloc";
    case Source::kOwnerArticle: return "owner-article";
    case Source::kOwnerMutex: return "owner-mutex";
    case Source::kOwnerLockFree: return "owner-lock-free";
  }
  __builtin_unreachable();
}

std::optional<Workload> workload_of(std::string_view name) { return value_of<Workload>(kWorkloads, name); }
std::optional<Source> source_of(std::string_view name) { return value_of<Source>(kSources, name); }

std::uint64_t operations_of(const Job& job) {
  const std::uint64_t units = job.iterations * job.units;
  switch (job.test) {
    case Workload::kCompute: return units * kComputeRounds;
    case Workload::kAllocate: return units * kListNodes;
    case Workload::kMixed: return units * kMixedNodes;
    case Workload::kMemory: return units * kMemoryWords;
    case Workload::kObject:
    case Workload::kLocked: return units * kListNodes;
    case Workload::kIsolation: return units * kIsolationBlocks;
    case Workload::kHandover: return units * kHandoverBlocks;
  }
  __builtin_unreachable();
}

std::string_view operation_name(Workload test) {
  switch (test) {
    case Workload::kCompute: return "round";
    case Workload::kAllocate:
    case Workload::kMixed:
    case Workload::kObject:
    case Workload::kLocked: return "node";
    case Workload::kMemory: return "word";
    case Workload::kIsolation:
    case Workload::kHandover: return "block";
  }
  __builtin_unreachable();
}

std::vector<std::string> words_of(const Job& job) {
  return job_words(job.test, job.mode, job.source, job.workers, job.iterations, job.units, job.one_cpu);
}

Job job_of(const std::vector<std::string>& words) {
  JobWords next(kWorkerCommand, words, 7);
  return {.test = next.named(workload_of),
          .mode = next.named(mode_of),
          .source = next.named(source_of),
          .workers = next.number(),
          .iterations = next.number(),
          .units = next.large_number(),
          .one_cpu = next.flag()};
}

}  // namespace freehold::cli::scale
