// SPDX-License-Identifier: MIT
#include <nlohmann/json.hpp>

#include "cli/report/json.hpp"
#include "cli/report/page.hpp"
#include "lab/experiment/assets.hpp"
#include "lab/pools/experiment.hpp"

namespace freehold::cli::pools {
namespace {
using nlohmann::ordered_json;

ordered_json row_json(const Row& row) {
  return {{"text", text_of(row)}, {"test", name_of(row.test)}, {"context", name_of(row.context)}, {"threads", row.threads}};
}

ordered_json sample_json(const std::optional<Sample>& sample) {
  if (!sample) return nullptr;
  return {{"elapsed_ns", sample->elapsed_ns},
          {"operations", sample->operations},
          {"failures", sample->failures},
          {"counted", sample->counted},
          {"conflicts", sample->conflicts},
          {"cpu_ns", sample->cpu_ns},
          {"peak_rss_bytes", sample->peak_rss_bytes}};
}

ordered_json series_json(const Results& results, const Series& series) {
  ordered_json json = row_json(series.cell.row);
  json.update({{"pool", results.settings.pools[series.cell.pool]->name},
               {"shards", series.cell.shards},
               {"counted", series.cell.counted},
               {"ns", or_null(cost(&series))},
               {"spread", spread(costs_of(series))},
               {"contention", or_null(contention(&series))},
               {"shortened", is_shortened(results, series)},
               {"failure", text_or_null(series.failure)}});
  json["samples"] = list_json(series.samples, sample_json);
  return json;
}

ordered_json comparisons_json(const Results& results) {
  return list_json(comparisons(results), [](const Comparison& c) {
    ordered_json json = row_json(c.row);
    json.update({{"ours", c.ours},
                 {"best", c.other},
                 {"pool", c.name},
                 {"ratio", c.ratio()},
                 {"least_ratio", c.least},
                 {"greatest_ratio", c.greatest}});
    return json;
  });
}

ordered_json settings_json(const Settings& settings) {
  ordered_json pools = list_json(settings.pools, [](const Candidate* pool) -> ordered_json {
    return {
        {"name", pool->name}, {"source", pool->source}, {"kind", name_of(pool->kind)}, {"distributed", pool->distributed}};
  });
  return {{"pools", std::move(pools)},
          {"tests", names_json(settings.tests)},
          {"contexts", names_json(settings.contexts)},
          {"threads", settings.threads},
          {"operations", settings.operations},
          {"slot_bytes", settings.slot_bytes},
          {"repeat", settings.repeat},
          {"milliseconds", settings.milliseconds},
          {"crc_threads", settings.crc_threads},
          {"crc_pools", settings.crc_pools},
          {"crc_bytes", settings.crc_bytes},
          {"crc_reads", settings.crc_reads}};
}

ordered_json simulated_json(const Results& results) {
  ordered_json series = list_json(results.simulated, [](const Simulated& one) -> ordered_json {
    return {{"pool", one.pool}, {"workload", one.workload}, {"quantum", one.quantum}, {"misses", one.misses}};
  });
  return {{"cores", kSimulatedCores}, {"series", std::move(series)}};
}

}  // namespace

ordered_json results_json(const Results& results) {
  ordered_json json = head_json("freehold-pools", results);
  json.update({{"settings", settings_json(results.settings)},
               {"ours", kOurs},
               {"comparisons", comparisons_json(results)},
               {"simulated", simulated_json(results)},
               {"notes", notes_of(results)},
               {"series", list_json(results.series, [&](const Series& series) { return series_json(results, series); })}});
  return json;
}

std::string page_of(const ordered_json& results) {
  return cli::page_of({.title = "Freehold: the pools",
                       .brand = "Freehold · pools of fixed-size slots",
                       .question = "Which pool is the fastest, and where?",
                       .sections = assets::pools_html,
                       .script = assets::pools_js},
                      results);
}

bool write_results(const ResultFiles& files, const Results& results) {
  files.write(results_json(results), page_of, table_of(results));
  return !results.has_failures();
}

}  // namespace freehold::cli::pools
