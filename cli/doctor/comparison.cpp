// SPDX-License-Identifier: MIT
#include "cli/doctor/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/doctor/format.hpp"
#include "cli/doctor/markdown.hpp"
#include "cli/report/text.hpp"
#include "cli/stats_table.hpp"
#include "cli/support/failure.hpp"
#include "freehold/doctor/analysis/resampled.hpp"

namespace freehold::cli::doctor {
namespace {
using freehold::doctor::Estimate;
using freehold::doctor::Experiment;
using freehold::doctor::Resampled;
using freehold::doctor::Trial;
using nlohmann::ordered_json;

constexpr std::size_t kWidth = 100;
constexpr double kNineOfTen = 1.645;  // standard errors to either side

constexpr Word kWords[] = {
    {"time", WordKind::kRatio},        {"time_alone", WordKind::kRatio}, {"cpu", WordKind::kRatio},
    {"memory", WordKind::kRatio},      {"faults", WordKind::kRatio},     {"waits", WordKind::kRatio},
    {"allocations", WordKind::kRatio},
};

using Figure = double (*)(const Trial&);

std::vector<Trial> trials_with(const std::vector<Trial>& trials, Figure figure) {
  std::vector<Trial> with = trials;
  for (Trial& trial : with) {
    trial.throughput.reset();
    const double value = figure(trial);
    // Trials that lost time to other programs count less where it is time that is compared.
    trial.stolen_s = trial.wall_s > 0 ? trial.stolen_s / trial.wall_s * value : 0;
    trial.wall_s = value;
  }
  return with;
}

// Both sides as an experiment, so that limits are drawn as the verdict's are.
std::optional<Change> changed(std::string_view name, std::string what, Unit unit, const std::vector<Trial>& before,
                              const std::vector<Trial>& after, Figure figure) {
  if (before.empty() || after.empty()) return std::nullopt;
  Experiment both;
  both.variants.resize(2);
  both.cells.push_back({.variant = 0, .setting = {}, .trials = trials_with(before, figure), .failure = {}});
  both.cells.push_back({.variant = 1, .setting = {}, .trials = trials_with(after, figure), .failure = {}});
  for (const auto& cell : both.cells) {
    if (std::ranges::any_of(cell.trials, [](const Trial& trial) { return !(trial.wall_s > 0); })) return std::nullopt;
  }
  const Resampled resampled(both);
  const auto& cells = both.cells;
  Change change{.name = name, .what = std::move(what), .unit = unit, .before = {}, .after = {}, .ratio = {}};
  change.before = resampled.estimate([&](const auto& costs) { return costs(cells[0]); });
  change.after = resampled.estimate([&](const auto& costs) { return costs(cells[1]); });
  change.ratio = resampled.estimate([&](const auto& costs) { return costs(cells[1]) / costs(cells[0]); });
  change.is_beyond_chance = change.ratio->low > 1 || change.ratio->high < 1;
  return change;
}

std::optional<Change> changed_share(std::string_view name, std::string what, const std::optional<Estimate>& before,
                                    const std::optional<Estimate>& after) {
  if (!before || !after) return std::nullopt;
  return Change{.name = name,
                .what = std::move(what),
                .unit = Unit::kShare,
                .before = *before,
                .after = *after,
                .ratio = {},
                .is_beyond_chance = before->high < after->low || after->high < before->low};
}

// The probe counts every allocation, so that what differs is the program's doing, though one run may differ from another.
std::optional<Change> changed_allocations(const Side& before, const Side& after) {
  if (!before.allocations || !after.allocations || *before.allocations <= 0) return std::nullopt;
  const double one = *before.allocations, other = *after.allocations, ratio = other / one;
  return Change{.name = "allocations",
                .what = "allocations in a run",
                .unit = Unit::kCount,
                .before = {one, one, one},
                .after = {other, other, other},
                .ratio = Estimate{ratio, ratio, ratio},
                .is_beyond_chance = false};
}

void add(std::vector<Change>& changes, std::optional<Change> change) {
  if (change) changes.push_back(std::move(*change));
}

Trial trial_of(const ordered_json& json) {
  Trial trial;
  trial.wall_s = json.at("wall_s").get<double>();
  trial.user_s = json.at("user_s").get<double>();
  trial.system_s = json.at("system_s").get<double>();
  trial.peak_rss_bytes = json.at("peak_rss_bytes").get<std::uint64_t>();
  trial.page_faults = json.at("page_faults").get<std::uint64_t>();
  trial.voluntary_switches = json.at("voluntary_switches").get<std::uint64_t>();
  trial.involuntary_switches = json.at("involuntary_switches").get<std::uint64_t>();
  trial.stolen_s = json.at("stolen_s").get<double>();
  trial.throttled_s = json.at("throttled_s").get<double>();
  if (!json.at("throughput").is_null()) trial.throughput = json.at("throughput").get<double>();
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

std::string value_text(const Change& change, const Estimate& of) {
  switch (change.unit) {
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
                       : fmt::format("{} ({})", doctor::value_text(*change.ratio), range);
}

std::string_view judgement_of(const Change& change) {
  if (change.name == "allocations") return "counted once";
  if (!change.is_beyond_chance) return "may be chance";
  const bool more = change.after.value > change.before.value;
  if (change.unit == Unit::kSeconds) return more ? "slower" : "faster";
  return more ? "more" : "less";
}

const Change* find(const Comparison& comparison, std::string_view name) {
  const auto found = std::ranges::find(comparison.changes, name, &Change::name);
  return found == comparison.changes.end() ? nullptr : &*found;
}

std::string headline_of(const Comparison& comparison) {
  const Change& time = *find(comparison, "time");
  if (!time.is_beyond_chance)
    return fmt::format("No clear difference in time: it takes {} what it took.", times_text(*time.ratio));
  const Estimate& ratio = *time.ratio;
  const Estimate faster{1 / ratio.high, 1 / ratio.value, 1 / ratio.low};
  return ratio.value < 1 ? fmt::format("Faster: {} as fast as before.", times_text(faster))
                         : fmt::format("Slower: it takes {} what it took.", times_text(ratio));
}

ordered_json estimate_json(const Estimate& estimate) {
  return {{"low", estimate.low}, {"value", estimate.value}, {"high", estimate.high}};
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

ordered_json json_of(const Side& side) {
  return {{"name", side.name},
          {"machine", side.machine},
          {"headline", side.headline.empty() ? ordered_json(nullptr) : ordered_json(side.headline)},
          {"trials", side.all.size()},
          {"trials_alone", side.alone.size()}};
}

std::vector<std::string> notes_of(const Side& before, const Side& after) {
  std::vector<std::string> notes;
  if (before.machine != after.machine)
    notes.push_back(fmt::format("The machines differ ({}; {}): what changed may be theirs.", before.machine, after.machine));
  if (std::min(before.all.size(), after.all.size()) < 3)
    notes.emplace_back("There are fewer than three trials of each: the limits are rough.");
  return notes;
}

}  // namespace

Comparison compare(Side before, Side after) {
  if (before.all_text != after.all_text)
    throw Failure(kExitRefused, fmt::format("{} was measured on {}, {} on {}: they cannot be compared; run both on as many",
                                            printable(before.name), before.all_text, printable(after.name), after.all_text));
  for (const Side* side : {&before, &after}) {
    if (side->all.empty())
      throw Failure(kExitRefused, fmt::format("{} has no trial of the program as it is", printable(side->name)));
  }
  Comparison c{.before = std::move(before), .after = std::move(after), .changes = {}, .notes = {}};
  const Side& a = c.before;
  const Side& b = c.after;
  const bool same_alone = a.alone_text == b.alone_text && a.alone_text != a.all_text;
  auto& out = c.changes;
  add(out, changed("time", "time, " + a.all_text, Unit::kSeconds, a.all, b.all, [](const Trial& t) { return t.cost(); }));
  if (out.empty()) throw Failure(kExitRefused, "no time was measured that could be compared");
  if (same_alone)
    add(out, changed("time_alone", "time, " + a.alone_text, Unit::kSeconds, a.alone, b.alone,
                     [](const Trial& t) { return t.cost(); }));
  add(out, changed("cpu", "CPU time", Unit::kSeconds, a.all, b.all, [](const Trial& t) { return t.cpu_s(); }));
  add(out, changed("memory", "peak memory", Unit::kBytes, a.all, b.all,
                   [](const Trial& t) { return static_cast<double>(t.peak_rss_bytes); }));
  add(out, changed("faults", "page faults", Unit::kCount, a.all, b.all,
                   [](const Trial& t) { return static_cast<double>(t.page_faults); }));
  add(out, changed("waits", "times that it waited", Unit::kCount, a.all, b.all,
                   [](const Trial& t) { return static_cast<double>(t.voluntary_switches); }));
  add(out, changed_allocations(a, b));
  add(out, changed_share("in_malloc", "CPU time in malloc and free", a.in_malloc, b.in_malloc));
  add(out, changed_share("lost", "time that is lost, " + a.all_text, a.lost, b.lost));
  c.notes = notes_of(a, b);
  return c;
}

Side side_of(const ordered_json& report, std::string name) {
  Side side;
  side.name = std::move(name);
  try {
    const ordered_json& verdict = report.at("verdict");
    const ordered_json& machine = report.at("machine");
    side.machine =
        fmt::format("{}, {} CPUs", machine.at("cpu_model").get<std::string>(), machine.at("cpus").get<unsigned>());
    side.all_text = verdict.at("all").at("text").get<std::string>();
    side.alone_text = verdict.at("alone").at("text").get<std::string>();
    side.all = trials_in(report, verdict.at("all"));
    side.alone = trials_in(report, verdict.at("alone"));
    side.headline = verdict.at("headline").get<std::string>();
    if (const Facts facts = doctor::facts_of(report); facts.figures.contains("lost")) side.lost = facts.figures.at("lost");
    if (const ordered_json& recording = report.at("recording"); !recording.is_null()) {
      const double share = recording.at("cpu_share").get<double>();
      const double error = kNineOfTen * recording.at("cpu_share_error").get<double>();
      side.in_malloc = Estimate{std::max(0.0, share - error), share, std::min(1.0, share + error)};
      side.allocations = recording.at("allocating").at("calls").get<double>();
    }
  } catch (const ordered_json::exception& error) {
    throw Failure(kExitRefused, fmt::format("{}: is damaged ({})", printable(side.name), printable(error.what())));
  }
  return side;
}

std::span<const Word> comparison_words() noexcept { return kWords; }

Facts facts_of(const Comparison& comparison) {
  Facts facts;
  for (const Change& change : comparison.changes) {
    if (change.ratio) facts.figures[std::string(change.name)] = *change.ratio;
  }
  return facts;
}

std::string text_of(const Comparison& comparison) {
  std::string out =
      fmt::format("freehold doctor compare\n  before: {}\n  after:  {}\n\n{}\n\n", printable(comparison.before.name),
                  printable(comparison.after.name), headline_of(comparison));
  out += fmt::format("{:<30}{:>12}{:>12}{:>21}\n", "", "before", "after", "after / before");
  for (const Change& change : comparison.changes)
    out += fmt::format("{:<30}{:>12}{:>12}{:>21}  {}\n", change.what, value_text(change, change.before),
                       value_text(change, change.after), ratio_text(change), judgement_of(change));
  if (!comparison.before.headline.empty())
    out += fmt::format("\nBefore: {}\nAfter:  {}\n", printable(comparison.before.headline),
                       printable(comparison.after.headline));
  std::vector<std::string> notes = comparison.notes;
  notes.emplace_back("A range is where nine of ten repetitions of all this would end.");
  return out + '\n' + list_of(notes, kWidth);
}

std::string markdown_of(const Comparison& comparison, const Gate& gate) {
  std::string out = fmt::format("## freehold doctor compare\n\n**{}**\n\n", markdown_text(headline_of(comparison)));
  out += fmt::format("before: {}  \nafter: {}\n\n", markdown_code(comparison.before.name),
                     markdown_code(comparison.after.name));
  out += markdown_of(gate);
  out += "| | before | after | after / before | |\n|---|--:|--:|--:|---|\n";
  for (const Change& change : comparison.changes)
    out += fmt::format("| {} | {} | {} | {} | {} |\n", markdown_text(change.what), value_text(change, change.before),
                       value_text(change, change.after), ratio_text(change), judgement_of(change));
  out += '\n';
  for (const std::string& note : comparison.notes) out += fmt::format("* {}\n", markdown_text(note));
  return out + "* A range is where nine of ten repetitions of all this would end.\n";
}

ordered_json json_of(const Comparison& comparison) {
  ordered_json changes = ordered_json::array();
  for (const Change& change : comparison.changes)
    changes.push_back({{"name", change.name},
                       {"what", change.what},
                       {"unit", name_of(change.unit)},
                       {"before", estimate_json(change.before)},
                       {"after", estimate_json(change.after)},
                       {"ratio", change.ratio ? estimate_json(*change.ratio) : ordered_json(nullptr)},
                       {"beyond_chance", change.is_beyond_chance}});
  return {{"schema", kComparisonSchema},          {"headline", headline_of(comparison)},
          {"before", json_of(comparison.before)}, {"after", json_of(comparison.after)},
          {"changes", std::move(changes)},        {"notes", comparison.notes}};
}

}  // namespace freehold::cli::doctor
