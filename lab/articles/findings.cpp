// SPDX-License-Identifier: MIT
#include "lab/articles/findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "cli/report/text.hpp"
#include "cli/support/statistics.hpp"
#include "lab/experiment/series.hpp"
#include "lab/scale/verdict.hpp"

namespace freehold::cli::articles {
namespace {

std::vector<double> measured(const Sets& sets) {
  std::vector<double> values;
  for (const auto& value : sets) {
    if (value) values.push_back(*value);
  }
  return values;
}

Verdict verdict_of(scale::Outcome outcome) {
  switch (outcome) {
    case scale::Outcome::kReproduced: return Verdict::kReproduced;
    case scale::Outcome::kRefuted: return Verdict::kRefuted;
    case scale::Outcome::kUndecided: return Verdict::kUndecided;
    case scale::Outcome::kNotMeasured: return Verdict::kNotMeasured;
  }
  __builtin_unreachable();
}

}  // namespace

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

Sets combine(const std::vector<Sets>& figures, const std::function<double(const std::vector<double>&)>& f) {
  Sets result(std::ranges::min(figures, {}, &Sets::size).size());
  for (std::size_t set = 0; set < result.size(); ++set) {
    std::vector<double> values;
    for (const Sets& one : figures) {
      if (one[set]) values.push_back(*one[set]);
    }
    if (values.size() == figures.size()) result[set] = f(values);
  }
  return result;
}

Sets quotient(const Sets& a, const Sets& b) {
  Sets result = combine({a, b}, [](const std::vector<double>& v) { return v[1] > 0 ? v[0] / v[1] : 0; });
  for (std::size_t set = 0; set < result.size(); ++set) {
    if (b[set] && *b[set] <= 0) result[set].reset();
  }
  return result;
}
Sets least_of(const std::vector<Sets>& figures) {
  return combine(figures, [](const std::vector<double>& v) { return std::ranges::min(v); });
}
Sets greatest_of(const std::vector<Sets>& figures) {
  return combine(figures, [](const std::vector<double>& v) { return std::ranges::max(v); });
}
Sets mean_of(const std::vector<Sets>& figures) {
  return combine(figures, [](const std::vector<double>& v) { return geometric_mean(v); });
}

std::optional<double> median_of(const Sets& sets) { return median_if_any(measured(sets)); }

std::optional<std::pair<double, double>> range_of(const Sets& sets) {
  const std::vector<double> values = measured(sets);
  if (values.empty()) return std::nullopt;
  const auto [least, greatest] = std::ranges::minmax(values);
  return std::pair(least, greatest);
}

std::string figure_text(std::optional<double> value) { return value ? three_digits(*value) : "–"; }
std::string figure_text(const Sets& sets) { return figure_text(median_of(sets)); }

void Claims::judge(Words words, const Sets& ratio, double threshold, bool at_least) {
  if (cpus_ < words.least_cpus)
    return not_testable(std::move(words.id), std::move(words.statement), "nothing runs at the same time on so few CPUs");
  Claim claim;
  claim.id = std::move(words.id);
  claim.statement = std::move(words.statement);
  claim.limits = std::move(words.limits);
  claim.threshold = threshold;
  claim.at_least = at_least;
  if (std::vector<double> values = measured(ratio); !values.empty()) {
    for (double& value : values) value = std::round(100 * value) / 100;  // as it is printed
    claim.figure = std::move(words.figure);
    claim.ratio = median(values);
    claim.least = std::ranges::min(values);
    claim.greatest = std::ranges::max(values);
    claim.verdict = verdict_of(scale::decide(values, threshold, !at_least));
    if (others_ > scale::kBusyMachine && !words.by_cpu_time) {
      claim.verdict = Verdict::kUndecided;
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
  claim.verdict = Verdict::kNotTestable;
  add(std::move(claim));
}

void Claims::add(Claim claim) {
  claim.article = article_;
  all_.push_back(std::move(claim));
}

}  // namespace freehold::cli::articles
