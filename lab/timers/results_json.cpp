// SPDX-License-Identifier: MIT
#include <nlohmann/json.hpp>

#include "cli/report/json.hpp"
#include "cli/report/page.hpp"
#include "cli/support/statistics.hpp"
#include "lab/experiment/assets.hpp"
#include "lab/timers/experiment.hpp"

namespace freehold::cli::timers {
namespace {
using nlohmann::ordered_json;

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
  const Series* const base = results.find(series.cell.row, series.cell.load, kReference);
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
  return {{"text", text_of(row)},
          {"test", name_of(row.test)},
          {"timers", row.timers},
          {"users", row.users},
          {"load", name_of(series.cell.load)},
          {"structure", results.settings.structures[series.cell.structure]->name},
          {"phases", list_json(phases_of(row.test), [&](Phase phase) { return phase_json(results, series, phase); })},
          {"failure", text_or_null(series.failure)},
          {"samples", list_json(series.samples, [&](const auto& sample) { return sample_json(sample, row.test); })}};
}

ordered_json targets_json(const Results& results) {
  return list_json(targets_of(results), [](const Target& target) -> ordered_json {
    return {{"text", target.text},
            {"ratio", target.ratio.median},
            {"least_ratio", target.ratio.least},
            {"greatest_ratio", target.ratio.greatest},
            {"wanted", target.wanted},
            {"at_least", target.at_least},
            {"reached", target.is_reached()}};
  });
}

ordered_json settings_json(const Settings& settings) {
  ordered_json structures = list_json(settings.structures, [](const Candidate* one) -> ordered_json {
    return {{"name", one->name}, {"source", one->source}, {"kind", name_of(one->kind)}};
  });
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
  ordered_json json = head_json("freehold-timers", results);
  json.update({{"settings", settings_json(results.settings)},
               {"base", kReference},
               {"targets", targets_json(results)},
               {"notes", notes_of(results)},
               {"series", list_json(results.series, [&](const Series& series) { return series_json(results, series); })}});
  return json;
}

std::string page_of(const ordered_json& results) {
  return cli::page_of({.title = "Freehold: the timers",
                       .brand = "Freehold · timers",
                       .question = "How much do timers cost, and which threads contend for them?",
                       .sections = assets::timers_html,
                       .script = assets::timers_js},
                      results);
}

bool write_results(const ResultFiles& files, const Results& results) {
  files.write(results_json(results), page_of, table_of(results));
  return !results.has_failures();
}

}  // namespace freehold::cli::timers
