// SPDX-License-Identifier: MIT
#include "lab/articles/findings.hpp"

#include <fmt/format.h>

#include "lab/experiment/notes.hpp"

namespace freehold::cli::articles {

Findings findings_of(const Results& results) {
  Findings findings;
  if (results.crc) find_distributed_pools(results, findings);
  if (results.several && results.fewer && results.alone) find_pools_compared(results, findings);
  if (results.timers) find_timers(results, findings);
  if (results.scaling && results.one_cpu) find_scaling(results, findings);
  if (results.blocks) find_thread_local(results, findings);
  if (!results.complete) findings.notes.emplace_back(kInterruptedNote);
  for (std::string& failure : failures_of(results)) findings.notes.push_back(std::move(failure));
  if (results.plan.choice.repeat == 1)
    findings.notes.emplace_back("There was one set only: a verdict near its threshold means nothing.");
  return findings;
}

}  // namespace freehold::cli::articles
