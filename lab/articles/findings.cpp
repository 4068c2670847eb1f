// SPDX-License-Identifier: MIT
#include "lab/articles/findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace freehold::lab::articles {

namespace {

// By all measurements.
Findings all_findings(const Results& results) {
  Findings findings;
  if (results.crc && results.padding && results.crc_on_one_cpu && results.handed) find_distributed_pools(results, findings);
  if (results.handed && results.several && results.locks && results.fewer && results.alone)
    find_pools_compared(results, findings);
  if (results.timers) find_timers(results, findings);
  if (results.scaling && results.one_cpu && results.pooled) find_scaling(results, findings);
  if (results.blocks && results.blocks_one_cpu) find_thread_local(results, findings);
  return findings;
}

}  // namespace

Findings findings_of(const Results& results) {
  Findings findings = all_findings(results);
  findings.claims = judge_undisturbed(results, [](const Results& some) { return all_findings(some).claims; });
  if (!results.complete) findings.notes.emplace_back(kInterruptedNote);
  for (std::string& failure : failures_of(results)) findings.notes.push_back(std::move(failure));
  std::vector<double> others;
  for_each_part(results, [&](const auto& part) { add_others(*part, others); });
  note_busy(others, findings.notes);
  if (results.choice.repeat == 1)
    findings.notes.emplace_back("There was one set only: a verdict near its threshold means nothing.");
  return findings;
}

void Plot::Line::add(const Sets& sets, std::optional<double> of_article) {
  const auto range = range_of(sets);
  values.push_back(range ? std::optional(range->median) : std::nullopt);
  least.push_back(range ? std::optional(range->least) : std::nullopt);
  greatest.push_back(range ? std::optional(range->greatest) : std::nullopt);
  article.push_back(of_article);
}

void Claims::judge(Words words, const Sets& ratio, double threshold, bool at_least) {
  if (cpus_ < words.least_cpus)
    return not_testable(std::move(words.id), std::move(words.statement), "nothing runs at the same time on so few CPUs");
  Claim claim;
  claim.id = std::move(words.id);
  claim.statement = std::move(words.statement);
  claim.limits = std::move(words.limits);
  claim.judge(ratio, threshold, at_least);
  if (claim.ratio) claim.figure = std::move(words.figure);
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

}  // namespace freehold::lab::articles
