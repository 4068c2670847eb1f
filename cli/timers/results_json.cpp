#include "cli/timers/results_json.hpp"

#include <nlohmann/json.hpp>

#include "cli/report/json.hpp"
#include "cli/support/statistics.hpp"

namespace freehold::cli::timers {
namespace {
using nlohmann::ordered_json;

std::string_view name_of_kind(Kind kind) {
  switch (kind) {
    case Kind::kOurs: return "ours";
    case Kind::kLibrary: return "library";
    case Kind::kFloor: return "floor";
  }
  __builtin_unreachable();
}

ordered_json sample_json(const std::optional<Sample>& sample, Trial test) {
  if (!sample) return nullptr;
  ordered_json json{{"background_operations", sample->background_operations}, {"peak_rss_bytes", sample->peak_rss_bytes}};
  for (const Phase phase : phases_of(test)) {
    if (phase == Phase::kAll) continue;
    const Cost& cost = sample->costs[static_cast<std::size_t>(phase)];
    json[name_of(phase)] = {{"operations", cost.operations},
                            {"cpu_ns", cost.cpu_ns},
                            {"wall_ns", cost.wall_ns},
                            {"sleeps", cost.sleeps},
                            {"waits", cost.waits}};
  }
  return json;
}

ordered_json phase_json(const Results& results, const Series& series, Phase phase) {
  const Series* const base = results.find(series.cell.row, series.cell.load, kBase);
  const Series* const alone = results.find(series.cell.row, Load::kAlone, series.cell.structure);
  const auto ratio = [&](const Series* other) -> ordered_json {
    const auto found = ratio_of(&series, other, phase, Figure::kCpu);
    return found ? ordered_json(found->median) : ordered_json(nullptr);
  };
  return {{"phase", name_of(phase)},
          {"cpu_ns", or_null(median_of(&series, phase, Figure::kCpu))},
          {"wall_ns", or_null(median_of(&series, phase, Figure::kWall))},
          {"sleeps_per_thousand", or_null(median_of(&series, phase, Figure::kSleeps))},
          {"waits_per_thousand", or_null(median_of(&series, phase, Figure::kWaits))},
          {"spread", spread(figures_of(series, phase, Figure::kCpu))},
          {"to_base", ratio(base)},
          {"to_alone", ratio(alone)}};
}

ordered_json series_json(const Results& results, const Series& series) {
  const Row& row = series.cell.row;
  ordered_json phases = ordered_json::array(), samples = ordered_json::array();
  for (const Phase phase : phases_of(row.test)) phases.push_back(phase_json(results, series, phase));
  for (const auto& sample : series.samples) samples.push_back(sample_json(sample, row.test));
  return {{"text", text_of(row)},
          {"test", name_of(row.test)},
          {"timers", row.timers},
          {"users", row.users},
          {"load", name_of(series.cell.load)},
          {"structure", results.settings.structures[series.cell.structure]->name},
          {"phases", std::move(phases)},
          {"failure", text_or_null(series.failure)},
          {"samples", std::move(samples)}};
}

ordered_json targets_json(const Results& results) {
  ordered_json list = ordered_json::array();
  for (const Target& target : targets_of(results)) {
    list.push_back({{"text", target.text},
                    {"ratio", target.ratio.median},
                    {"least_ratio", target.ratio.least},
                    {"greatest_ratio", target.ratio.greatest},
                    {"wanted", target.wanted},
                    {"at_least", target.at_least},
                    {"reached", target.is_reached()}});
  }
  return list;
}

ordered_json settings_json(const Settings& settings) {
  ordered_json structures = ordered_json::array();
  for (const Contender* one : settings.structures)
    structures.push_back({{"name", one->name}, {"source", one->source}, {"kind", name_of_kind(one->kind)}});
  return {{"structures", std::move(structures)},
          {"tests", names_json(settings.tests)},
          {"loads", names_json(settings.loads)},
          {"count", settings.count},
          {"cancelled", settings.cancelled},
          {"live", settings.live},
          {"shared", settings.shared},
          {"users", settings.users},
          {"background", settings.background},
          {"repeat", settings.repeat},
          {"milliseconds", settings.milliseconds}};
}

}  // namespace

ordered_json results_json(const Results& results) {
  ordered_json series = ordered_json::array();
  for (const Series& one : results.series) series.push_back(series_json(results, one));
  ordered_json json = head_json("freehold-timers", results);
  json.update({{"settings", settings_json(results.settings)},
               {"base", kBase},
               {"targets", targets_json(results)},
               {"notes", notes_of(results)},
               {"series", std::move(series)}});
  return json;
}

}  // namespace freehold::cli::timers
