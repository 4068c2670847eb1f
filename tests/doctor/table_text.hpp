// SPDX-License-Identifier: MIT
// The verdict's table as Markdown, as it stands in docs/verdict-table.md.
#pragma once
#include <fmt/format.h>

#include <string>

#include "tools/doctor/verdict/verdict_table.hpp"

namespace freehold::doctor {

inline const Threshold& threshold_of(Limit limit) { return thresholds()[static_cast<std::size_t>(limit)]; }

inline std::string text_of(const Criterion& evidence, bool excludes = false) {
  const std::string fact = fmt::format("`{}`", describe(evidence.fact).name);
  const double limit = threshold_of(evidence.limit).value;
  switch (evidence.is) {
    case Is::kAtLeast: return fmt::format("{} {}≥ {:.4g}", fact, excludes ? "perhaps " : "surely ", limit);
    case Is::kBelow: return fmt::format("{} {}< {:.4g}", fact, excludes ? "perhaps " : "surely ", limit);
    case Is::kAboutAtLeast: return fmt::format("{} ≥ {:.4g}", fact, limit);
    case Is::kAboutBelow: return fmt::format("{} < {:.4g}", fact, limit);
    case Is::kKnown: return fact + " is known";
    case Is::kUnknown: return fact + " is not known";
  }
  __builtin_unreachable();
}

inline std::string text_of(const std::vector<AnyOf>& needs) {
  std::string text;
  for (const AnyOf& any : needs) {
    std::string one;
    for (const Criterion& evidence : any) one += (one.empty() ? "" : " or ") + text_of(evidence);
    text += (text.empty() ? "" : "; ") + one;
  }
  return text.empty() ? "–" : text;
}

// Every piece of evidence that the table has.
inline std::vector<Criterion> all_evidence() {
  std::vector<Criterion> all = excludes_all();
  const auto add = [&all](const std::vector<AnyOf>& needs) {
    for (const AnyOf& any : needs) all.insert(all.end(), any.begin(), any.end());
  };
  for (const Row& row : rows()) {
    add(row.needs);
    all.insert(all.end(), row.excluded_by.begin(), row.excluded_by.end());
    if (row.part) add(needs_of_loss(*row.part));
  }
  add(needs_of_allocators_part());
  return all;
}

inline std::string thresholds_of(Fact fact) {
  std::string text;
  std::vector<Limit> told;
  for (const Criterion& evidence : all_evidence()) {
    if (evidence.fact != fact || evidence.is == Is::kKnown || evidence.is == Is::kUnknown) continue;
    if (std::ranges::find(told, evidence.limit) != told.end()) continue;
    told.push_back(evidence.limit);
    const Threshold& threshold = threshold_of(evidence.limit);
    text += fmt::format("{}{:.4g} ({} and {} answers): {}", text.empty() ? "" : "; ", threshold.value, threshold.lower,
                        threshold.higher, threshold.reason);
  }
  return text;
}

inline std::string table_text() {
  std::string text = "| cause | needs | is excluded by | is probable if | is decided by |\n|---|---|---|---|---|\n";
  for (const Row& row : rows()) {
    std::string excluded;
    for (const Criterion& evidence : row.excluded_by) excluded += (excluded.empty() ? "" : "; ") + text_of(evidence, true);
    text += fmt::format("| {} | {}{} | {} | {} | {} |\n", name_of(row.cause), text_of(row.needs),
                        row.part ? fmt::format("; part `{}`", describe(*row.part).name) : "",
                        excluded.empty() ? "–" : excluded, row.probable, row.experiment);
  }
  text += fmt::format(
      "\nEach row with a part needs as well: {}.\nThe allocator's part counts if: {}. Every row is excluded by: {}.\n",
      text_of(needs_of_loss(Fact::kOwnPart)), text_of(needs_of_allocators_part()), text_of(excludes_all().front(), true));
  text +=
      "\n### Thresholds\n\n| fact | what it is | thresholds (answers that change when it is a tenth lower and higher): "
      "reason |\n|---|---|---|\n";
  for (std::size_t i = 0; i < kFacts; ++i) {
    const auto fact = static_cast<Fact>(i);
    const FactDescription& of = describe(fact);
    text += fmt::format("| `{}` | {}, {} | {} |\n", of.name, of.sentence, of.unit, thresholds_of(fact));
  }
  return text;
}

}  // namespace freehold::doctor
