// SPDX-License-Identifier: MIT
// The tables of the verdicts as Markdown, as they stand in docs/verdict-table.md.
#pragma once
#include <fmt/format.h>

#include <string>

#include "tools/doctor/verdict/memory_verdict.hpp"
#include "tools/doctor/verdict/verdict_table.hpp"

namespace freehold::doctor {

inline const Threshold& threshold_of(Limit limit) { return thresholds()[static_cast<std::size_t>(limit)]; }
inline const Threshold& threshold_of(MemoryLimit limit) { return memory_thresholds()[static_cast<std::size_t>(limit)]; }

template <class Criterion>
std::string text_of(const Criterion& evidence, bool excludes = false) {
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

template <class Criterion>
std::string text_of(const std::vector<Criterion>& any) {
  if constexpr (std::is_same_v<Criterion, doctor::Criterion>)
    for (const auto& [name, group] : named_evidence())
      if (group == any) return fmt::format("*{}*", name);
  std::string text;
  for (const Criterion& evidence : any) text += (text.empty() ? "" : " or ") + text_of(evidence);
  return text;
}
template <class Criterion>
std::string text_of(const std::vector<std::vector<Criterion>>& needs) {
  std::string text;
  for (const auto& any : needs) text += (text.empty() ? "" : "; ") + text_of(any);
  return text.empty() ? "–" : text;
}

template <class Criterion>
void add(std::vector<Criterion>& all, const std::vector<std::vector<Criterion>>& needs) {
  for (const auto& any : needs) all.insert(all.end(), any.begin(), any.end());
}
// Every piece of evidence that the tables have.
inline std::vector<Criterion> all_evidence() {
  std::vector<Criterion> all = excludes_all();
  for (const Row& row : rows()) {
    add(all, row.needs);
    all.insert(all.end(), row.excluded_by.begin(), row.excluded_by.end());
    if (row.part) add(all, needs_of_loss(*row.part));
  }
  add(all, needs_of_allocators_part());
  return all;
}
// The greatest part stands for all: each needs the same.
inline std::vector<MemoryCriterion> all_memory_evidence() {
  std::vector<MemoryCriterion> all;
  add(all, needs_of_agreement());
  add(all, needs_of_part(MemoryFact::kGreatest));
  for (const MemoryRow& row : memory_rows()) add(all, row.needs);
  return all;
}

template <class FactOf, class Criterion>
std::string thresholds_of(FactOf fact, const std::vector<Criterion>& all) {
  std::string text;
  std::vector<decltype(Criterion::limit)> told;
  for (const Criterion& evidence : all) {
    if (evidence.fact != fact || evidence.is == Is::kKnown || evidence.is == Is::kUnknown) continue;
    if (std::ranges::find(told, evidence.limit) != told.end()) continue;
    told.push_back(evidence.limit);
    const Threshold& threshold = threshold_of(evidence.limit);
    text += fmt::format("{}{:.4g} ({} and {} answers): {}", text.empty() ? "" : "; ", threshold.value, threshold.lower,
                        threshold.higher, threshold.reason);
  }
  return text;
}

template <class FactOf, std::size_t kCount, class Criterion>
std::string facts_text(const std::vector<Criterion>& all) {
  std::string text =
      "| fact | what it is | thresholds (answers that change when it is a tenth lower and higher): reason "
      "|\n|---|---|---|\n";
  for (std::size_t i = 0; i < kCount; ++i) {
    const auto fact = static_cast<FactOf>(i);
    const FactDescription& of = describe(fact);
    text += fmt::format("| `{}` | {}, {} | {} |\n", of.name, of.sentence, of.unit, thresholds_of(fact, all));
  }
  return text;
}

inline std::string table_text() {
  std::string text =
      "| row | cause | part | needs | is excluded by | what it means | is decided by |\n|---|---|---|---|---|---|---|\n";
  unsigned number = 0;
  for (const Row& row : rows()) {
    std::string excluded;
    for (const Criterion& evidence : row.excluded_by) excluded += (excluded.empty() ? "" : "; ") + text_of(evidence, true);
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", ++number, name_of(row.cause),
                        row.part ? fmt::format("`{}`", describe(*row.part).name) : "–", text_of(row.needs),
                        excluded.empty() ? "–" : excluded, row.probable, row.experiment);
  }
  std::string of_part = text_of(needs_of_loss(Fact::kOwnPart)), own = fmt::format("`{}`", describe(Fact::kOwnPart).name);
  for (std::size_t at; (at = of_part.find(own)) != std::string::npos;) of_part.replace(at, own.size(), "its part");
  text += fmt::format(
      "\nA row with a part also needs: {}.\nA row with `allocator-part` also needs: {}.\nEvery row is excluded by: {}.\n\n",
      of_part, text_of(needs_of_allocators_part()), text_of(excludes_all().front(), true));
  text += "| evidence | needs one of these |\n|---|---|\n";
  for (const auto& [name, group] : named_evidence()) {
    std::string one;
    for (const Criterion& evidence : group) one += (one.empty() ? "" : " or ") + text_of(evidence);
    text += fmt::format("| *{}* | {} |\n", name, one);
  }
  return text + "\n### Thresholds\n\n" + facts_text<Fact, kFacts>(all_evidence());
}

inline std::string memory_table_text() {
  std::string text = "| cause | needs |\n|---|---|\n";
  for (const MemoryRow& row : memory_rows())
    text += fmt::format("| {} | {}{}{} |\n", name_of(row.cause), row.needs.empty() ? "" : text_of(row.needs) + "; ",
                        row.part ? fmt::format("part `{}`; ", describe(*row.part).name) : "",
                        row.needs_agreement ? "agreement" : "nothing else");
  text += fmt::format("\nEach row with a part needs, of that part: {}. Agreement: {}.\n",
                      text_of(needs_of_part(MemoryFact::kGreatest)), text_of(needs_of_agreement()));
  return text + "\n### Thresholds of memory\n\n" + facts_text<MemoryFact, kMemoryFacts>(all_memory_evidence());
}

}  // namespace freehold::doctor
