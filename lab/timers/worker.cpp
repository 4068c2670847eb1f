// SPDX-License-Identifier: MIT
#include "lab/timers/worker.hpp"

#include <stdexcept>

#include "cli/support/library.hpp"
#include "lab/experiment/candidates.hpp"
#include "lab/timers/candidates.hpp"

namespace freehold::cli::timers {
namespace {

// A user ends by its own CPU time, of which the load's threads leave it a part; setting millions of timers up comes first.
std::chrono::seconds limit_of(const Job& job) {
  return std::chrono::seconds(60 + job.timers / 50'000 +
                              std::uint64_t{job.milliseconds} * (job.users + job.background) / 1000);
}

}  // namespace

int worker_main(const std::vector<std::string>& arguments) {
  return run_as_worker([&] {
    const Job job = job_of(arguments);
    const Candidate* const candidate = find_by_name(candidates(), job.structure);
    if (candidate == nullptr || !runs(*candidate, job.test)) throw std::runtime_error("no such structure");
    Report report = (job.test == Trial::kShared ? candidate->run_shared : candidate->run)(job);
    note_malloc_library(report.malloc_library);
    return report;
  });
}

Measured<Report> measure(const Job& job, const std::string& library, Interrupts& interrupts) {
  const auto complaint = [&](const Report& report) -> std::string {
    std::string why = library.empty() ? "" : wrong_malloc(library, report.malloc_library);
    if (why.empty() && report.group.correct != 1) why = "the timers that fired are not the timers that were set";
    return why;
  };
  return measure_in_worker<Report>(kWorkerCommand, words_of(job), library, limit_of(job), interrupts, complaint);
}

}  // namespace freehold::cli::timers
