// SPDX-License-Identifier: MIT
// How tables of evidence are read, that of time (verdict_table.hpp) and that of memory (memory_table.hpp). Evidence is a
// fact compared with a threshold, and is sure if the fact's limits are clear of it. A row needs groups of evidence, of each
// of which one is enough; it is sure if each group has one that is.
//
// Pure.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/doctor/facts/fact.hpp"

namespace freehold::doctor {

struct Threshold {
  double value = 0;
  std::string_view reason;
  // Answers of the stored reports that change when it is a tenth lower, and a tenth higher.
  unsigned lower = 0, higher = 0;
};
// Puts each threshold in the place of its limit.
template <class LimitOf, std::size_t n>
std::array<Threshold, n> by_limit(std::initializer_list<std::pair<LimitOf, Threshold>> rows) {
  std::array<Threshold, n> all;
  for (const auto& [limit, threshold] : rows) all[static_cast<std::size_t>(limit)] = threshold;
  return all;
}
enum class Is : std::uint8_t {
  kAtLeast,       // the lower limit is
  kBelow,         // the upper limit is
  kAboutAtLeast,  // the value is, whatever its limits
  kAboutBelow,    // the same
  kKnown,
  kUnknown,
};

template <class FactOf, class LimitOf>
struct CriterionOf {
  FactOf fact{};
  Is is{};
  LimitOf limit{};  // of kKnown and kUnknown without a meaning
  [[nodiscard]] bool operator==(const CriterionOf&) const = default;
};

// How far a fact is from its threshold.
struct Answer {
  bool surely = false;   // so, and its limits are clear of the threshold
  bool perhaps = false;  // its limits leave it open, or it is not known
  bool likely = false;   // its value is on the right side
};

template <class Criterion>
Answer answer_of(const Criterion& evidence, const std::optional<Estimate>& fact) {
  if (evidence.is == Is::kUnknown) return {!fact, !fact, !fact};
  if (evidence.is == Is::kKnown) return {fact.has_value(), true, fact.has_value()};
  if (!fact) return {.surely = false, .perhaps = true, .likely = false};
  const double limit = limit_of(evidence.limit);
  switch (evidence.is) {
    case Is::kAtLeast: return {fact->low >= limit, fact->high >= limit, fact->value >= limit};
    case Is::kBelow: return {fact->high < limit, fact->low < limit, fact->value < limit};
    case Is::kAboutAtLeast: return {fact->value >= limit, fact->high >= limit, fact->value >= limit};
    default: return {fact->value < limit, fact->low < limit, fact->value < limit};
  }
}

// The evidence of a row that is not sure; empty: the row is.
template <class Criterion>
struct Standing {
  // Each criterion that is open adds one of these to the distance.
  static constexpr double kLikely = 1, kPerhaps = 2, kExcluded = 3, kAgainst = 4, kFar = 100;

  std::vector<Criterion> open;  // not surely so, or not surely excluded; the first of each group
  double distance = 0;          // from being sure
  unsigned sure = 0;            // of what it needs
  bool is_possible = true;      // nothing speaks surely against it
  bool is_likely = true;        // by the values it is so
  bool is_told_by_time = false, is_told_by_counts = false;

  [[nodiscard]] bool is_sure() const { return open.empty(); }
  // Chooses, of two that may be so and lack as much, the one for which more speaks.
  [[nodiscard]] bool is_nearer_than(const Standing& other) const {
    if (distance != other.distance) return distance < other.distance;
    return is_possible && other.is_possible && sure > other.sure;
  }

  void need(const std::vector<Criterion>& any, const auto& facts) {
    bool perhaps = false, likely = false;
    for (const Criterion& evidence : any) {
      const Answer answer = answer_of(evidence, facts[evidence.fact]);
      if (answer.surely) {
        ++sure;
        // The absence of something tells of no cause.
        const bool is_presence = evidence.is == Is::kAtLeast || evidence.is == Is::kAboutAtLeast;
        if (!is_presence || !describe(evidence.fact).is_evidence) return;
        (describe(evidence.fact).told_by == ToldBy::kTime ? is_told_by_time : is_told_by_counts) = true;
        return;
      }
      perhaps |= answer.perhaps;
      likely |= answer.likely;
    }
    leave_open(any.front(), perhaps, likely, kAgainst);
  }
  void exclude(const Criterion& evidence, const auto& facts) {
    const Answer answer = answer_of(evidence, facts[evidence.fact]);
    if (!answer.perhaps) return;
    leave_open(evidence, !answer.surely, !answer.likely, kExcluded);
  }
  void leave_open(const Criterion& evidence, bool perhaps, bool likely, double against) {
    open.push_back(evidence);
    distance += likely ? kLikely : perhaps ? kPerhaps : describe(evidence.fact).is_evidence ? against : kFar;
    is_possible &= perhaps;
    is_likely &= likely;
  }
};

}  // namespace freehold::doctor
