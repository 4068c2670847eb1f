#include "cli/scale/results_json.hpp"

#include <nlohmann/json.hpp>

#include "cli/report/json.hpp"

namespace freehold::cli::scale {
namespace {
using nlohmann::ordered_json;

ordered_json subjects_json(const std::vector<Subject>& subjects) {
  ordered_json list = ordered_json::array();
  for (const Subject& s : subjects) {
    list.push_back({{"name", s.name}, {"library", s.library}, {"source", name_of(s.source)}});
  }
  return list;
}

ordered_json sample_json(const std::optional<Sample>& sample) {
  if (!sample) return nullptr;
  return {{"elapsed_ns", sample->elapsed_ns}, {"cpu_ns", sample->cpu_ns}, {"peak_rss_bytes", sample->peak_rss_bytes}};
}

ordered_json series_json(const Results& results, const Series& series) {
  const Job job = job_of(results, series);
  ordered_json samples = ordered_json::array();
  for (const auto& sample : series.samples) samples.push_back(sample_json(sample));
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
      {"samples", std::move(samples)},
  };
}

ordered_json verdict_json(const Verdict& verdict) {
  ordered_json claims = ordered_json::array();
  for (const Claim& claim : verdict.claims) {
    claims.push_back({{"id", claim.id},
                      {"statement", claim.statement},
                      {"outcome", name_of(claim.outcome)},
                      {"ratio", or_null(claim.ratio)},
                      {"figures", claim.figures}});
  }
  return {{"paragraph", verdict.paragraph}, {"claims", std::move(claims)}};
}

}  // namespace

ordered_json results_json(const Results& results, const Verdict& verdict) {
  const Settings& settings = results.settings;
  ordered_json ideal = ordered_json::array();
  for (const std::uint32_t workers : settings.workers) {
    ideal.push_back(ideal_speed(settings.iterations, workers, results.machine.cpus));
  }
  ordered_json series = ordered_json::array();
  for (const Series& one : results.series) series.push_back(series_json(results, one));
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
               {"series", std::move(series)}});
  return json;
}

}  // namespace freehold::cli::scale
