// SPDX-License-Identifier: MIT
#include "tools/doctor/report/compare_answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "tools/doctor/facts/derived.hpp"
#include "tools/doctor/facts/resampled.hpp"
#include "tools/doctor/report/diagnosis.hpp"
#include "tools/doctor/report/format.hpp"
#include "tools/doctor/report/gate.hpp"
#include "tools/doctor/report/results_json.hpp"
#include "tools/output/text.hpp"
#include "tools/support/failure.hpp"
#include "tools/support/units.hpp"

namespace freehold::doctor::report {
namespace {
using nlohmann::ordered_json;

enum class Unit : std::uint8_t { kSeconds, kBytes, kCount, kShare };

Unit unit_of(Figure figure) {
  switch (figure) {
    case Figure::kTime:
    case Figure::kTimeAlone:
    case Figure::kCpu: return Unit::kSeconds;
    case Figure::kMemory: return Unit::kBytes;
    case Figure::kFaults:
    case Figure::kWaits:
    case Figure::kAllocations: return Unit::kCount;
    case Figure::kInMalloc:
    case Figure::kLost: return Unit::kShare;
  }
  __builtin_unreachable();
}

std::string what_text(const ComparisonReport& report, Figure figure) {
  const doctor::Side& side = report.before.measured;
  switch (figure) {
    case Figure::kTime: return "time, " + describe(side.on_all);
    case Figure::kTimeAlone: return "time, " + describe(side.on_one);
    case Figure::kCpu: return "CPU time";
    case Figure::kMemory: return "peak memory";
    case Figure::kFaults: return "page faults";
    case Figure::kWaits: return "times that it waited";
    case Figure::kAllocations: return "allocations in a run";
    case Figure::kInMalloc: return "CPU time in malloc and free";
    case Figure::kLost: return "time that is lost, " + describe(side.on_all);
  }
  __builtin_unreachable();
}

std::string change_text(const Change& change, const Estimate& of) {
  switch (unit_of(change.figure)) {
    case Unit::kSeconds: return seconds_text(of.value);
    case Unit::kBytes: return bytes_text(static_cast<std::uint64_t>(of.value));
    case Unit::kCount: return count_text(of.value);
    case Unit::kShare: return percent_value_text(of);
  }
  __builtin_unreachable();
}

std::string ratio_text(const Change& change) {
  if (!change.ratio) return "–";
  const std::string range = range_text(*change.ratio);
  return range.empty() ? fmt::format("{:.2f}", change.ratio->value)
                       : fmt::format("{} ({})", value_text(*change.ratio), range);
}

std::string_view judgement_of_change(const Change& change) {
  if (change.figure == Figure::kAllocations) return "counted once";
  if (!change.is_beyond_chance) return "may be chance";
  const bool more = change.after.value > change.before.value;
  if (unit_of(change.figure) == Unit::kSeconds) return more ? "slower" : "faster";
  return more ? "more" : "less";
}

std::string headline_of(const ComparisonReport& report) {
  const Estimate& ratio = *report.comparison.changes.front().ratio;
  switch (doctor::tempo_of(report.comparison)) {
    case Tempo::kFaster:
      return fmt::format("Faster: {} as fast as before.", times_text({1 / ratio.high, 1 / ratio.value, 1 / ratio.low}));
    case Tempo::kSlower: return fmt::format("Slower: it takes {} what it took.", times_text(ratio));
    case Tempo::kNoClearChange: break;
  }
  return fmt::format("No clear difference in time: it takes {} what it took.", times_text(ratio));
}

std::string_view name_of(Unit unit) {
  switch (unit) {
    case Unit::kSeconds: return "seconds";
    case Unit::kBytes: return "bytes";
    case Unit::kCount: return "count";
    case Unit::kShare: return "share";
  }
  __builtin_unreachable();
}

ordered_json json_of(const NamedSide& side) {
  return {{"name", side.name},
          {"machine", side.machine},
          {"headline", text_or_null(side.headline)},
          {"trials", side.measured.all.size()},
          {"trials_alone", side.measured.alone.size()}};
}

// Share of the CPUs that others took from a trial, usually.
double taken_from(const doctor::Side& side) {
  std::vector<double> shares;
  for (const Trial& trial : side.all) shares.push_back(doctor::taken_share(trial, side.on_all));
  return doctor::median(std::move(shares));
}

std::vector<std::string> notes_of(const NamedSide& before, const NamedSide& after) {
  std::vector<std::string> notes;
  if (before.machine != after.machine)
    notes.push_back(fmt::format("The machines differ ({}; {}): what changed may be theirs.", before.machine, after.machine));
  if (std::min(before.measured.all.size(), after.measured.all.size()) < 3)
    notes.emplace_back("There are fewer than three trials of each: the limits are rough.");
  const double taken = std::max(taken_from(before.measured), taken_from(after.measured));
  if (taken >= doctor::kDisturbed)
    notes.push_back(
        fmt::format("Other processes took {} of the CPUs from the trials of one side: the limits allow for what "
                    "that may have cost. Compare again on a quieter machine.",
                    percent_text(taken)));
  return notes;
}

void refuse_mismatch(Mismatch mismatch, const NamedSide& before, const NamedSide& after) {
  const auto without_trial = [](const NamedSide& side) {
    return Failure(kExitRefused, fmt::format("{} has no trial of the program as it is", printable(side.name)));
  };
  switch (mismatch) {
    case Mismatch::kNone: return;
    case Mismatch::kOtherSettings:
      throw Failure(kExitRefused,
                    fmt::format("{} was measured on {}, {} on {}: they cannot be compared; run both on as many",
                                printable(before.name), describe(before.measured.on_all), printable(after.name),
                                describe(after.measured.on_all)));
    case Mismatch::kNothingBefore: throw without_trial(before);
    case Mismatch::kNothingAfter: throw without_trial(after);
    case Mismatch::kNoTime: throw Failure(kExitRefused, "no time was measured that could be compared");
  }
}

}  // namespace

ComparisonReport compare(NamedSide before, NamedSide after) {
  doctor::Comparison comparison = doctor::compare(before.measured, after.measured);
  refuse_mismatch(comparison.mismatch, before, after);
  std::vector<std::string> notes = notes_of(before, after);
  return {.before = std::move(before),
          .after = std::move(after),
          .comparison = std::move(comparison),
          .notes = std::move(notes)};
}

Gate worse_than(const ComparisonReport& report, const std::string& asked, double share) {
  const Estimate& ratio = *report.comparison.changes.front().ratio;
  return {.asked = "--worse-than " + asked,
          .fails = ratio.low > 1 + share     ? Answer::kYes
                   : ratio.high <= 1 + share ? Answer::kNo
                                             : Answer::kUndecided,
          .because = fmt::format("it takes {} what it took", times_text(ratio))};
}

Document document_of(const ComparisonReport& report, const Gate& gate) {
  Document out{"freehold doctor compare"};
  out.parts.emplace_back(Line{"Before", report.before.name});
  out.parts.emplace_back(Line{"After", report.after.name});
  out.parts.emplace_back(Headline{"Answer", headline_of(report)});
  out.parts.emplace_back(Judgement{text_of(gate)});
  Rows rows;
  for (const Change& change : report.comparison.changes)
    rows.push_back({what_text(report, change.figure), change_text(change, change.before), change_text(change, change.after),
                    ratio_text(change), std::string(judgement_of_change(change))});
  using Kind = Column::Kind;
  out.parts.emplace_back(Table{
      {{.kind = Kind::kText}, {.title = "before"}, {.title = "after"}, {.title = "after / before"}, {.kind = Kind::kText}},
      std::move(rows)});
  out.parts.emplace_back(Line{"Before", report.before.headline});
  out.parts.emplace_back(Line{"After", report.after.headline});
  std::vector<std::string> notes = report.notes;
  notes.emplace_back(kOfRanges);
  out.parts.emplace_back(Section{"Notes"});
  out.parts.emplace_back(notes);
  return out;
}

ordered_json json_of(const ComparisonReport& report) {
  const auto change_json = [&](const Change& change) -> ordered_json {
    return {{"name", name_of(change.figure)},
            {"what", what_text(report, change.figure)},
            {"unit", name_of(unit_of(change.figure))},
            {"before", change.before},
            {"after", change.after},
            {"ratio", change.ratio},
            {"beyond_chance", change.is_beyond_chance}};
  };
  return {{"schema", kComparisonSchema},
          {"headline", headline_of(report)},
          {"before", json_of(report.before)},
          {"after", json_of(report.after)},
          {"changes", list_json(report.comparison.changes, change_json)},
          {"notes", report.notes}};
}

}  // namespace freehold::doctor::report
