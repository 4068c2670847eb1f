// SPDX-License-Identifier: MIT
#include "tools/doctor/report/comparison.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "tools/doctor/facts/derived.hpp"
#include "tools/doctor/facts/resampled.hpp"
#include "tools/doctor/report/diagnosis.hpp"
#include "tools/doctor/report/examine.hpp"
#include "tools/doctor/report/format.hpp"
#include "tools/doctor/report/gate.hpp"
#include "tools/doctor/report/results_json.hpp"
#include "tools/doctor/report/variants.hpp"
#include "tools/doctor/run/paired_trials.hpp"
#include "tools/launch/program.hpp"
#include "tools/output/text.hpp"
#include "tools/support/failure.hpp"
#include "tools/support/machine.hpp"
#include "tools/support/shell.hpp"
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

Trial trial_of(const ordered_json& json) {
  Trial trial;
  FREEHOLD_FROM_JSON(json, trial, wall_s, user_s, system_s, peak_rss_bytes, page_faults, voluntary_switches,
                     involuntary_switches, stolen_s, taken_s, throttled_s, throughput);
  if (json.contains("ready_share")) FREEHOLD_FROM_JSON(json, trial, ready_share);
  return trial;
}

std::vector<Trial> trials_in(const ordered_json& report, const ordered_json& setting) {
  std::vector<Trial> trials;
  for (const auto& cell : report.at("experiment").at("cells")) {
    if (cell.at("variant") != 0 || cell.at("setting") != setting) continue;
    for (const auto& trial : cell.at("trials")) trials.push_back(trial_of(trial));
  }
  return trials;
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

Setting setting_of(const ordered_json& json) {
  return {.threads = json.at("threads").is_null() ? 0 : json.at("threads").get<unsigned>(),
          .cpus = json.at("cpus").get<unsigned>(),
          .copies = json.at("copies").get<unsigned>()};
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

doctor::Command command_of(const std::vector<std::string>& words) {
  doctor::Command command{.file = find_program(words.front()), .arguments = words};
  if (::access(command.file.c_str(), F_OK) != 0)
    throw Failure(kExitNotFound, fmt::format("{}: no such program", printable(words.front())));
  return command;
}

NamedSide named(const std::vector<std::string>& words) {
  const Machine machine = this_machine();
  return {.name = shell_words(words),
          .machine = fmt::format("{}, {} CPUs", machine.cpu_model, machine.cpus),
          .headline = {},
          .measured = {}};
}

std::string activity_text(const PairedActivity& activity, const std::string& command) {
  switch (activity.kind) {
    case PairedActivity::Kind::kFirstRun: return "first run of " + command;
    case PairedActivity::Kind::kRecording: return "recording " + command;
    case PairedActivity::Kind::kTrial: break;
  }
  return fmt::format("round {} of {}: {}", activity.round, activity.rounds, command);
}

std::string_view side_text(Version version) { return version == Version::kBefore ? "Before" : "After"; }

std::string note_text(const PairedNote& note) {
  const std::string_view side = side_text(note.version);
  switch (note.kind) {
    case PairedNote::Kind::kRecordedRunFailed:
      return fmt::format("{}: the recorded run failed: {}.", side, printable(note.why));
    case PairedNote::Kind::kRecordingUnreadable:
      return fmt::format("{}: a process's recording could not be read: {}.", side, printable(note.why));
    case PairedNote::Kind::kUnderFreehold: break;
  }
  return fmt::format("{}: it runs under Freehold, which comes before the probe: its allocations were not counted.", side);
}

// As of an examination, but there is no option to go on all the same.
Failure failure_of(const PairedRefused& refused, const std::string& program, int signal) {
  const std::string more = printable(refused.more());
  switch (refused.why()) {
    case Refusal::kFails:
      return {kExitRefused,
              fmt::format("{} fails: {}{}{}", program, printable(refused.detail()), more.empty() ? "" : ": ", more)};
    case Refusal::kNoEnd:
      return {kExitRefused, fmt::format("{} did not end within {:.0f} s; give it time: --budget {:.0f}", program,
                                        refused.seconds(), 10 * refused.seconds())};
    case Refusal::kInterruptedAtFirst:
      return {128 + signal, "interrupted before both programs had ended for the first time"};
    default: return report::failure_of(refused, program, {}, signal);
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

NamedSide side_of(const ordered_json& report, std::string name) {
  NamedSide side;
  doctor::Side& measured = side.measured;
  side.name = std::move(name);
  try {
    const ordered_json& verdict = report.at("verdict");
    const ordered_json& machine = report.at("machine");
    side.machine =
        fmt::format("{}, {} CPUs", machine.at("cpu_model").get<std::string>(), machine.at("cpus").get<unsigned>());
    measured.on_all = setting_of(verdict.at("all"));
    measured.on_one = setting_of(verdict.at("alone"));
    measured.all = trials_in(report, verdict.at("all"));
    measured.alone = trials_in(report, verdict.at("alone"));
    side.headline = verdict.at("headline").get<std::string>();
    measured.lost = lost_in(report);
    if (const ordered_json& recording = report.at("recording"); !recording.is_null()) {
      const double share = recording.at("cpu_share").get<double>();
      const double error = doctor::kNineOfTen * recording.at("cpu_share_error").get<double>();
      measured.in_malloc = Estimate{std::max(0.0, share - error), share, std::min(1.0, share + error)};
      measured.allocations = recording.at("allocating").at("calls").get<double>();
    }
  } catch (const ordered_json::exception& error) {
    throw Failure(kExitRefused, fmt::format("{}: is damaged ({})", printable(side.name), printable(error.what())));
  }
  return side;
}

Gate worse_than(const ComparisonReport& report, const std::string& asked, double share) {
  const Estimate& ratio = *report.comparison.changes.front().ratio;
  return {.asked = "--worse-than " + asked,
          .fails = ratio.low > 1 + share     ? Answer::kYes
                   : ratio.high <= 1 + share ? Answer::kNo
                                             : Answer::kUndecided,
          .because = fmt::format("it takes {} what it took", times_text(ratio))};
}

std::string text_of(const ComparisonReport& report) {
  std::string out = fmt::format("freehold doctor compare\n  before: {}\n  after:  {}\n\n{}\n\n",
                                printable(report.before.name), printable(report.after.name), headline_of(report));
  out += fmt::format("{:<30}{:>12}{:>12}{:>21}\n", "", "before", "after", "after / before");
  for (const Change& change : report.comparison.changes)
    out +=
        fmt::format("{:<30}{:>12}{:>12}{:>21}  {}\n", what_text(report, change.figure), change_text(change, change.before),
                    change_text(change, change.after), ratio_text(change), judgement_of_change(change));
  if (!report.before.headline.empty())
    out += fmt::format("\nBefore: {}\nAfter:  {}\n", printable(report.before.headline), printable(report.after.headline));
  std::vector<std::string> notes = report.notes;
  notes.emplace_back("A range is where nine of ten repetitions of all this would end.");
  return out + '\n' + list_of(notes, kWidth);
}

std::string markdown_of(const ComparisonReport& report, const Gate& gate) {
  std::string out = fmt::format("## freehold doctor compare\n\n**{}**\n\n", markdown_text(headline_of(report)));
  out += fmt::format("before: {}  \nafter: {}\n\n", markdown_code(report.before.name), markdown_code(report.after.name));
  out += markdown_of(gate);
  out += "| | before | after | after / before | |\n|---|--:|--:|--:|---|\n";
  for (const Change& change : report.comparison.changes)
    out += fmt::format("| {} | {} | {} | {} | {} |\n", markdown_text(what_text(report, change.figure)),
                       change_text(change, change.before), change_text(change, change.after), ratio_text(change),
                       judgement_of_change(change));
  out += '\n';
  for (const std::string& note : report.notes) out += fmt::format("* {}\n", markdown_text(note));
  return out + "* A range is where nine of ten repetitions of all this would end.\n";
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

ComparisonReport compare(const CompareRequest& request, Interrupts& interrupts, Progress& progress) {
  NamedSide before = named(request.before), after = named(request.after);
  const auto name_of = [&](Version version) { return version == Version::kBefore ? before.name : after.name; };
  std::vector<std::string> notes;
  auto caller = doctor::trials_on({.mask = interrupts.original_mask(), .stop_fd = interrupts.fd()});
  caller.show = [&](const PairedActivity& activity) { progress.show(activity_text(activity, name_of(activity.version))); };
  caller.signal = [&interrupts] { return interrupts.arrived(); };
  caller.probe = [&notes](Version version, const std::set<std::string>& files) {
    std::vector<std::string> reasons;
    std::string probe = find_probe(malloc_origin(files), reasons);
    for (const std::string& reason : reasons) notes.push_back(fmt::format("{}: {}", side_text(version), reason));
    return probe;
  };
  try {
    auto outcome = doctor::run_paired({.commands = {command_of(request.before), command_of(request.after)},
                                       .budget_s = request.budget_s,
                                       .rounds = request.rounds},
                                      caller);
    before.measured = std::move(outcome.sides[0]);
    after.measured = std::move(outcome.sides[1]);
    ComparisonReport report = compare(std::move(before), std::move(after));
    report.signal = outcome.signal;
    if (!outcome.complete) report.notes.emplace_back("Interrupted: this is what was finished until then.");
    report.notes.insert(report.notes.end(), notes.begin(), notes.end());
    for (const PairedNote& note : outcome.notes) report.notes.push_back(note_text(note));
    progress.wipe();
    return report;
  } catch (const PairedRefused& refused) {
    const auto& words = refused.version() == Version::kBefore ? request.before : request.after;
    throw failure_of(refused, printable(words.front()), interrupts.arrived());
  } catch (const doctor::Refused& refused) {
    throw failure_of(refused, printable(request.before.front()), {}, interrupts.arrived());
  }
}

}  // namespace freehold::doctor::report
