#include "cli/pools/results_json.hpp"

#include <nlohmann/json.hpp>

#include "cli/report/json.hpp"

namespace freehold::cli::pools {
namespace {
using nlohmann::ordered_json;

std::string_view name_of_kind(Kind kind) {
  switch (kind) {
    case Kind::kStrategy: return "strategy";
    case Kind::kLibrary: return "library";
    case Kind::kUnlocked: return "unlocked";
    case Kind::kFloor: return "floor";
  }
  __builtin_unreachable();
}

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
  ordered_json samples = ordered_json::array();
  for (const auto& sample : series.samples) samples.push_back(sample_json(sample));
  json["samples"] = std::move(samples);
  return json;
}

ordered_json comparisons_json(const Results& results) {
  ordered_json list = ordered_json::array();
  for (const Comparison& c : comparisons(results)) {
    ordered_json json = row_json(c.row);
    json.update({{"ours", c.ours},
                 {"best", c.other},
                 {"pool", c.name},
                 {"ratio", c.ratio()},
                 {"least_ratio", c.least},
                 {"greatest_ratio", c.greatest}});
    list.push_back(std::move(json));
  }
  return list;
}

ordered_json settings_json(const Settings& settings) {
  ordered_json pools = ordered_json::array();
  for (const Contender* pool : settings.pools)
    pools.push_back({{"name", pool->name},
                     {"source", pool->source},
                     {"kind", name_of_kind(pool->kind)},
                     {"distributed", pool->distributed}});
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
  ordered_json series = ordered_json::array();
  for (const Simulated& one : results.simulated) {
    series.push_back({{"pool", one.pool}, {"workload", one.workload}, {"quantum", one.quantum}, {"misses", one.misses}});
  }
  return {{"cores", kSimulatedCores}, {"series", std::move(series)}};
}

}  // namespace

ordered_json results_json(const Results& results) {
  ordered_json series = ordered_json::array();
  for (const Series& one : results.series) series.push_back(series_json(results, one));
  ordered_json json = head_json("freehold-pools", results);
  json.update({{"settings", settings_json(results.settings)},
               {"ours", kOurs},
               {"comparisons", comparisons_json(results)},
               {"simulated", simulated_json(results)},
               {"notes", notes_of(results)},
               {"series", std::move(series)}});
  return json;
}

}  // namespace freehold::cli::pools
