// SPDX-License-Identifier: MIT
#include "lab/simulate/simulation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lab/experiment/command.hpp"
#include "lab/experiment/options.hpp"
#include "lab/experiment/run.hpp"
#include "tools/output/json.hpp"

namespace freehold::lab::simulate {
namespace {
using nlohmann::ordered_json;

OptionTable<Settings>& options() {
  static OptionTable<Settings> table = [] {
    OptionTable<Settings> all;
    all.names("--workload", &Settings::workloads, sim::kEngineWorkloads)
        .as("workloads")
        .numbers("--size", &Settings::sizes, 1, sim::kMaxEngineBytes, "Sizes of a block")
        .as("sizes")
        .numbers("--cores", &Settings::cores, 1, sim::kMaxCores, "Numbers of simulated cores")
        .number("--quantum", &Settings::quantum, 1, 1'000'000, "Accesses to memory before another core gets its turn")
        .number("--pairs", &Settings::pairs, 1, 1'000'000,
                "Number of blocks that each core frees while it is counted [by the size]")
        .unwritten()
        .number("--places", &Settings::places, 1, 1000, "List the N places in the source with the most misses, too [none]")
        .unwritten()
        .number("--nodes", &Settings::nodes, 1, sim::kMaxCores,
                "Memory nodes of the machine: count lines that another one serves")
        .number("--far-cost", &Settings::far_cost, 100, 1000, "What such a line costs, in percent of one at home");
    return all;
  }();
  return table;
}

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

void add_options(Command& command) { options().add_to(command, "docs/simulate.md explains how to read the table."); }

int run_command() { return lab::run_command(options().files(), options().settings(), run, {}); }

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
  json.update({{"settings", options().json(settings)}, {"rows", std::move(rows)}});
  return json;
}

}  // namespace freehold::lab::simulate
