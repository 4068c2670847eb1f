// SPDX-License-Identifier: MIT
#include "tools/doctor/report/gate.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tools/doctor/verdict/memory_verdict.hpp"
#include "tools/doctor/verdict/verdict.hpp"
#include "tools/support/arguments.hpp"
#include "tools/support/failure.hpp"

namespace freehold::doctor::report {
namespace {
using doctor::Cause;
using doctor::MemoryCause;

struct KnownCause {
  std::string_view name;
  bool blames_allocator;
};

template <class Kind>
std::vector<KnownCause> causes(std::size_t count) {
  std::vector<KnownCause> known;
  for (std::size_t i = 0; i < count; ++i) {
    const auto cause = static_cast<Kind>(i);
    known.push_back({name_of(cause), blames_allocator(cause)});
  }
  return known;
}

}  // namespace

int Gate::exit_code() const noexcept {
  return fails == Answer::kYes ? kExitFails : fails == Answer::kNo ? kExitHolds : kExitUndecided;
}

std::string text_of(const Gate& gate) {
  if (gate.asked.empty()) return {};
  const char* const answer = gate.fails == Answer::kYes  ? "❌ fails"
                             : gate.fails == Answer::kNo ? "✅ passes"
                                                         : "❔ undecided";
  return fmt::format("{}: {}: {}", answer, gate.asked, gate.because);
}

FailOn::FailOn(Question question, const std::optional<std::string>& list) {
  if (!list) return;
  list_ = *list;
  const auto known =
      question == Question::kTime ? causes<Cause>(doctor::kCauses) : causes<MemoryCause>(doctor::kMemoryCauses);
  for (const std::string& name : split_list("--fail-on", list_)) {
    const std::size_t before = causes_.size();
    for (const auto& [cause, blames_allocator] : known) {
      if (name == cause || (name == "allocator" && blames_allocator)) causes_.push_back(cause);
    }
    if (causes_.size() != before) continue;
    std::vector<std::string_view> names{"allocator"};
    for (const KnownCause& cause : known) names.push_back(cause.name);
    refuse_name("--fail-on", name, names);
  }
}

Gate FailOn::judge(std::string_view cause) const {
  if (causes_.empty()) return {};
  const bool is_named = std::ranges::find(causes_, cause) != causes_.end();
  return {.asked = "--fail-on " + list_,
          .fails = is_named               ? Answer::kYes
                   : cause == "undecided" ? Answer::kUndecided
                                          : Answer::kNo,
          .because = fmt::format("the cause is {}", printable(cause))};
}

}  // namespace freehold::doctor::report
