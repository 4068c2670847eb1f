// SPDX-License-Identifier: MIT
#include "lab/simulate/simulation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/report/json.hpp"
#include "lab/experiment/run.hpp"

namespace freehold::cli::simulate {
namespace {
using nlohmann::ordered_json;

ordered_json count_json(const Settings& settings, std::uint32_t cores, const sim::EngineCount& count) {
  ordered_json json = {{"cores", cores},
                       {"pairs", count.pairs},
                       {"misses", count.per_pair(count.misses)},
                       {"locks", count.per_pair(count.locks)},
                       {"hand_overs", count.per_pair(count.hand_overs)},
                       {"sleeps", count.per_pair(count.waits)},
                       {"calls", count.per_pair(count.calls)},
                       {"accesses", count.per_pair(count.accesses)}};
  if (settings.nodes > 1 && cores > 1)  // one core has one node
    json.update({{"served", count.per_pair(count.served)},
                 {"far", count.per_pair(count.far)},
                 {"line_cost", line_cost(settings, count)}});
  if (count.places.empty()) return json;
  json["places"] = list_json(count.places, [](const sim::MissPlace& place) -> ordered_json {
    return {{"source", place.source}, {"object", place.object}, {"misses", place.misses_per_pair}, {"lines", place.lines}};
  });
  return json;
}

}  // namespace

std::optional<bool> is_flat(const Settings& settings, const Row& row) {
  const auto from = std::ranges::find(settings.cores, kFlatFrom);
  if (from == settings.cores.end()) return std::nullopt;
  const auto first = static_cast<std::size_t>(from - settings.cores.begin());
  if (first + 1 >= row.counts.size()) return std::nullopt;
  const auto misses = [&](std::size_t i) { return row.counts[i].per_pair(row.counts[i].misses); };
  const double bound = kFlatRatio * misses(first) + kFlatSlack;
  for (std::size_t i = first + 1; i < row.counts.size(); ++i)
    if (misses(i) > bound) return false;
  return true;
}

namespace {

// False: interrupted.
bool count_rows(const Settings& settings, std::vector<Row>& rows, Interrupts& interrupts, Progress& progress) {
  const std::size_t of = settings.workloads.size() * settings.sizes.size() * settings.cores.size();
  std::size_t done = 0;
  for (const EngineWorkload workload : settings.workloads) {
    for (const std::uint32_t bytes : settings.sizes) {
      rows.push_back({workload, bytes, {}});
      for (const std::uint32_t cores : settings.cores) {
        if (interrupts.arrived() != 0) break;
        progress.show(done++, of, fmt::format("{}, {} bytes, {} simulated cores", name_of(workload), bytes, cores));
        rows.back().counts.push_back(
            sim::count_engine({.workload = workload,
                               .bytes = bytes,
                               .cores = cores,
                               .nodes = std::min(settings.nodes, cores),
                               .quantum = settings.quantum,
                               .pairs = settings.pairs,
                               .note_places = settings.places != 0 && cores == settings.cores.back()}));
      }
    }
  }
  return done == of;
}

}  // namespace

Results run(const Settings& settings, Interrupts& interrupts, Progress& progress) {
  Results results;
  results.settings = settings;
  record_run(results, [&] { return count_rows(settings, results.rows, interrupts, progress); });
  return results;
}

ordered_json results_json(const Results& results) {
  const Settings& settings = results.settings;
  ordered_json rows = ordered_json::array();
  for (const Row& row : results.rows) {
    ordered_json counts = ordered_json::array();
    for (std::size_t i = 0; i < row.counts.size(); ++i)
      counts.push_back(count_json(settings, settings.cores[i], row.counts[i]));
    rows.push_back({{"workload", name_of(row.workload)},
                    {"bytes", row.bytes},
                    {"flat", or_null(is_flat(settings, row))},
                    {"counts", std::move(counts)}});
  }
  ordered_json json = head_json("freehold-simulate", results);
  json.update({{"settings",
                {{"workloads", names_json(settings.workloads)},
                 {"sizes", settings.sizes},
                 {"cores", settings.cores},
                 {"quantum", settings.quantum},
                 {"nodes", settings.nodes},
                 {"far_cost", settings.far_cost}}},
               {"rows", std::move(rows)}});
  return json;
}

bool write_results(const ResultFiles& files, const Results& results) {
  files.write(results_json(results), table_of(results));
  return true;
}

}  // namespace freehold::cli::simulate
