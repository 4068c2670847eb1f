// SPDX-License-Identifier: MIT
#include "lab/scale/job.hpp"

#include "cli/support/arguments.hpp"
#include "lab/experiment/job_words.hpp"
#include "lab/scale/work_size.hpp"

namespace freehold::cli::scale {

std::string_view name_of(Workload test) {
  constexpr std::string_view kNames[] = {"compute", "allocate", "mixed",     "memory",
                                         "object",  "locked",   "isolation", "handover"};
  return kNames[static_cast<std::size_t>(test)];
}

std::string_view name_of(Source source) {
  constexpr std::string_view kNames[] = {"malloc", "owner-article", "owner-mutex", "owner-lock-free"};
  return kNames[static_cast<std::size_t>(source)];
}

std::optional<Workload> workload_of(std::string_view name) { return value_of<Workload>(kWorkloads, name); }
std::optional<Source> source_of(std::string_view name) { return value_of<Source>(kSources, name); }

std::uint64_t operations_of(const Job& job) {
  constexpr std::uint64_t kOfAUnit[] = {kComputeRounds, kListNodes, kMixedNodes,      kMemoryWords,
                                        kListNodes,     kListNodes, kIsolationBlocks, kHandoverBlocks};
  return job.iterations * job.units * kOfAUnit[static_cast<std::size_t>(job.test)];
}

std::string_view operation_name(Workload test) {
  constexpr std::string_view kNames[] = {"round", "node", "node", "word", "node", "node", "block", "block"};
  return kNames[static_cast<std::size_t>(test)];
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
