// SPDX-License-Identifier: MIT
#include "cli/doctor/memory_gate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "cli/doctor/memory.hpp"
#include "cli/doctor/results_json.hpp"

namespace freehold::cli::doctor {
namespace {
using freehold::doctor::Estimate;
using freehold::doctor::kMemoryCauses;
using freehold::doctor::MemoryCause;
using freehold::doctor::MemoryPart;
using nlohmann::ordered_json;

const CauseNames& memory_causes() {
  static const CauseNames names = [] {
    CauseNames made;
    std::vector<std::string_view> blamed;
    for (std::size_t i = 0; i < kMemoryCauses; ++i) {
      const auto cause = static_cast<MemoryCause>(i);
      made.causes.push_back(name_of(cause));
      if (blames_allocator(cause)) blamed.push_back(name_of(cause));
    }
    made.groups = {
        {"allocator", blamed},
        {"live", {name_of(MemoryCause::kLiveData), name_of(MemoryCause::kLeak), name_of(MemoryCause::kOneBlock)}}};
    return made;
  }();
  return names;
}

const Word kMemoryWords[] = {{"memory", WordKind::kBytes},
                             {"peak", WordKind::kBytes},
                             {"live", WordKind::kShare},
                             {"free", WordKind::kShare},
                             {"leak", WordKind::kShare},
                             {"saved", WordKind::kShare, true},
                             {"cause", WordKind::kCause, false, &memory_causes},
                             {"failed", WordKind::kFlag, true}};

void add_shares(Facts& facts, const ordered_json& verdict) {
  const double whole = verdict.at("mean_bytes").get<double>();
  // What the measures do not agree on is not known.
  if (!verdict.at("doubt").is_null() || whole <= 0) return;
  constexpr std::array kFree = {MemoryPart::kRounding, MemoryPart::kArenas, MemoryPart::kCaches, MemoryPart::kFreePages,
                                MemoryPart::kHoles};
  double live = 0, free = 0;
  for (const auto& part : verdict.at("parts")) {
    const auto name = part.at("part").get<std::string>();
    const double share = part.at("mean_bytes").get<double>() / whole;
    if (name == name_of(MemoryPart::kLive)) live = share;
    if (std::ranges::any_of(kFree, [&name](MemoryPart one) { return name == name_of(one); })) free += share;
  }
  const double leak = live * verdict.at("leak_share").get<double>();
  facts.figures["live"] = {live, live, live};
  facts.figures["free"] = {free, free, free};
  facts.figures["leak"] = {leak, leak, leak};
}

void add_fixes(Facts& facts, const ordered_json& fixes, double whole) {
  Estimate best;
  bool is_known = false;
  for (const auto& fix : fixes) {
    if (fix.at("failed").get<bool>() || fix.at("saved_bytes").is_null() || whole <= 0) continue;
    const Estimate saved = estimate_of(fix.at("saved_bytes"));
    const Estimate share{saved.low / whole, saved.value / whole, saved.high / whole};
    facts.figures[fmt::format("saved({})", memory_treatment_name(fix.at("name").get<std::string>()))] = share;
    is_known = true;
    best = {std::max(best.low, share.low), std::max(best.value, share.value), std::max(best.high, share.high)};
  }
  if (is_known) facts.figures["saved(best)"] = best;
}

}  // namespace

std::span<const Word> memory_words() noexcept { return kMemoryWords; }

std::string memory_treatment_name(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"glibc, 1 arena", "arenas"}, {"glibc, no caches", "caches"}, {"glibc, trimmed", "trimmed"}};
  for (const auto& [of_report, of_option] : kNames)
    if (name == of_report) return std::string(of_option);
  return std::string(name);
}

Facts memory_facts_of(const ordered_json& report) {
  Facts facts;
  const ordered_json& verdict = report.at("verdict");
  const auto known = memory_causes().causes;
  if (const auto cause = std::ranges::find(known, verdict.at("cause").get<std::string>()); cause != known.end())
    facts.cause = *cause;
  add_shares(facts, verdict);
  bool any = false;
  for (const auto& cell : report.at("trials")) {
    const bool is_own = &cell == &report.at("trials").front(), failed = !cell.at("failure").is_null();
    any = any || failed;
    if (is_own || (!failed && cell.at("trials").empty())) continue;  // not run: not known
    facts.flags[fmt::format("failed({})", memory_treatment_name(cell.at("name").get<std::string>()))] = failed;
  }
  facts.flags["failed"] = any;
  facts.figures["memory"] = estimate_of(verdict.at("run_mean_bytes"));
  facts.figures["peak"] = estimate_of(verdict.at("run_peak_bytes"));
  add_fixes(facts, report.at("fixes"), facts.figures["memory"].value);
  return facts;
}

}  // namespace freehold::cli::doctor
