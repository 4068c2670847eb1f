// SPDX-License-Identifier: MIT
#include "lab/articles/findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace freehold::cli::articles {

Findings findings_of(const Results& results) {
  Findings findings;
  if (results.crc && results.crc_on_one_cpu && results.handed) find_distributed_pools(results, findings);
  if (results.handed && results.several && results.fewer && results.alone) find_pools_compared(results, findings);
  if (results.timers) find_timers(results, findings);
  if (results.scaling && results.one_cpu) find_scaling(results, findings);
  if (results.blocks) find_thread_local(results, findings);
  if (!results.complete) findings.notes.emplace_back(kInterruptedNote);
  for (std::string& failure : failures_of(results)) findings.notes.push_back(std::move(failure));
  if (results.choice.repeat == 1)
    findings.notes.emplace_back("There was one set only: a verdict near its threshold means nothing.");
  return findings;
}

void Claims::judge(Words words, const Sets& ratio, double threshold, bool at_least) {
  if (cpus_ < words.least_cpus)
    return not_testable(std::move(words.id), std::move(words.statement), "nothing runs at the same time on so few CPUs");
  Claim claim;
  claim.id = std::move(words.id);
  claim.statement = std::move(words.statement);
  claim.limits = std::move(words.limits);
  Sets printed = ratio;
  for (auto& value : printed) {
    if (value) value = std::round(100 * *value) / 100;
  }
  claim.judge(printed, threshold, at_least);
  if (claim.ratio) {
    claim.figure = std::move(words.figure);
    if (others_ > kBusyMachine && !words.by_cpu_time) {
      claim.outcome = Outcome::kUndecided;
      claim.limits += fmt::format("; other programs had {:.0f}% of the CPUs", 100 * others_);
    }
  }
  add(std::move(claim));
}

void Claims::not_testable(std::string id, std::string statement, std::string why) {
  Claim claim;
  claim.id = std::move(id);
  claim.statement = std::move(statement);
  claim.limits = std::move(why);
  claim.outcome = Outcome::kNotTestable;
  add(std::move(claim));
}

void Claims::add(Claim claim) {
  claim.article = article_;
  all_.push_back(std::move(claim));
}

}  // namespace freehold::cli::articles
