// SPDX-License-Identifier: MIT
#include <nlohmann/json.hpp>

#include "cli/report/json.hpp"
#include "cli/report/page.hpp"
#include "lab/experiment/assets.hpp"
#include "lab/scale/experiment.hpp"

namespace freehold::cli::scale {
namespace {
using nlohmann::ordered_json;

ordered_json subjects_json(const std::vector<Subject>& subjects) {
  return list_json(subjects, [](const Subject& s) -> ordered_json {
    return {{"name", s.name}, {"library", s.library}, {"source", name_of(s.source)}};
  });
}

ordered_json sample_json(const std::optional<Sample>& sample) {
  if (!sample) return nullptr;
  return {{"elapsed_ns", sample->elapsed_ns}, {"cpu_ns", sample->cpu_ns}, {"peak_rss_bytes", sample->peak_rss_bytes}};
}

ordered_json series_json(const Results& results, const Series& series) {
  const Job job = job_of(results, series);
  const auto set_spread = spread(times_of(series));
  return {
      {"test", name_of(series.cell.test)},
      {"mode", name_of(series.cell.mode)},
      {"subject", results.settings.subjects[series.cell.subject].name},
      {"workers", series.cell.workers},
      {"operations", operations_of(job)},
      {"operation", operation_name(series.cell.test)},
      {"median_seconds", or_null(median_time(&series))},
      {"spread", set_spread},
      {"ns_per_operation", or_null(nanoseconds_per_operation(results, &series))},
      {"speed", or_null(speed(results, series.cell))},
      {"peak_rss_bytes", or_null(peak_rss(&series))},
      {"failure", text_or_null(series.failure)},
      {"samples", list_json(series.samples, sample_json)},
  };
}

ordered_json verdict_json(const Verdict& verdict) {
  ordered_json claims = list_json(verdict.claims, [](const Claim& claim) -> ordered_json {
    return {{"id", claim.id},
            {"statement", claim.statement},
            {"outcome", name_of(claim.outcome)},
            {"ratio", or_null(claim.ratio)},
            {"figures", claim.figures}};
  });
  return {{"paragraph", verdict.paragraph}, {"claims", std::move(claims)}};
}

}  // namespace

ordered_json results_json(const Results& results, const Verdict& verdict) {
  const Settings& settings = results.settings;
  ordered_json ideal = list_json(settings.workers, [&](std::uint32_t workers) {
    return ideal_speed(settings.iterations, workers, results.machine.cpus);
  });
  ordered_json json = head_json("freehold-scale", results);
  json.update({{"settings",
                {{"subjects", subjects_json(settings.subjects)},
                 {"workers", settings.workers},
                 {"ideal_speed", std::move(ideal)},
                 {"tests", names_json(settings.tests)},
                 {"modes", names_json(settings.modes)},
                 {"iterations", settings.iterations},
                 {"repeat", settings.repeat},
                 {"milliseconds", settings.milliseconds}}},
               {"verdict", verdict_json(verdict)},
               {"notes", notes_of(results)},
               {"series", list_json(results.series, [&](const Series& series) { return series_json(results, series); })}});
  return json;
}

std::string page_of(const ordered_json& results) {
  return cli::page_of({.title = "Freehold: the scaling experiment",
                       .brand = "Freehold · scaling experiment",
                       .question = "Do threads scale like processes?",
                       .sections = assets::scale_html,
                       .script = assets::scale_js},
                      results);
}

bool write_results(const ResultFiles& files, const Results& results) {
  const Verdict verdict = verdict_of(results);
  files.write(results_json(results, verdict), page_of, table_of(results, verdict));
  return !results.has_failures();
}

}  // namespace freehold::cli::scale
