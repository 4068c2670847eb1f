// SPDX-License-Identifier: MIT
#include "lab/pools/worker.hpp"

#include <stdexcept>

#include "lab/experiment/candidates.hpp"
#include "lab/pools/candidates.hpp"

namespace freehold::cli::pools {
namespace {

// Preparing a pool takes longer than the test itself, and a thread looks at the clock only between blocks of operations.
std::chrono::seconds limit_of(const Job& job) { return std::chrono::seconds(60 + 50 * job.milliseconds / 1000); }

}  // namespace

int worker_main(const std::vector<std::string>& arguments) {
  return run_as_worker([&] {
    const Job job = job_of(arguments);
    const Candidate* const candidate = find_by_name(candidates(), job.pool);
    if (candidate == nullptr) throw std::runtime_error("no such pool");
    return candidate->run(job);
  });
}

Measured<Report> measure(const Job& job, Interrupts& interrupts) {
  return measure_in_worker<Report>(kWorkerCommand, words_of(job), "", limit_of(job), interrupts, [](const Report& report) {
    return report.group.correct == 1 ? "" : "two threads held the same slot";
  });
}

}  // namespace freehold::cli::pools
