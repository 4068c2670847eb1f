// SPDX-License-Identifier: MIT
#include "lab/pools/plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lab/experiment/command.hpp"

namespace freehold::cli::pools {
namespace {

std::uint32_t threads_of(const Settings& settings, Trial test) {
  if (is_single_threaded(test)) return 1;
  if (test == Trial::kRing) return std::max(2u, settings.threads / 2 * 2);
  return settings.threads;
}

}  // namespace

std::vector<std::uint32_t> shards_of(const Settings& settings, const Row& row, const Candidate& candidate) {
  if (row.test == Trial::kCrc && candidate.distributed) return settings.crc_pools;
  return {0};
}

std::string text_of(const Row& row) {
  if (row.test == Trial::kCrc) return fmt::format("crc, {} threads", row.threads);
  if (!has_contexts(row.test)) return std::string(name_of(row.test));
  return fmt::format("{}, {}", name_of(row.test), name_of(row.context));
}

std::vector<const Candidate*> parse_pools(const std::string& text) {
  return parse_candidates(candidates(), "--pools", "pools", text);
}

std::vector<Row> rows_of(const Settings& settings) {
  std::vector<Row> rows;
  for (const Trial test : settings.tests) {
    if (test == Trial::kCrc) {
      for (const std::uint32_t threads : settings.crc_threads) rows.push_back({test, Context::kFresh, threads});
    } else if (has_contexts(test)) {
      for (const Context context : settings.contexts) rows.push_back({test, context, threads_of(settings, test)});
    } else {
      rows.push_back({test, Context::kFresh, threads_of(settings, test)});
    }
  }
  return rows;
}

std::vector<Cell> cells_of(const Settings& settings) {
  std::vector<Cell> cells;
  for (const Row& row : rows_of(settings)) {
    for (std::size_t pool = 0; pool < settings.pools.size(); ++pool) {
      const Candidate& candidate = *settings.pools[pool];
      if (!runs(candidate, row.test, row.context, row.threads)) continue;
      for (const std::uint32_t shards : shards_of(settings, row, candidate)) {
        cells.push_back({row, pool, shards, false});
        if (row.test == Trial::kCrc && candidate.kind == Kind::kStrategy) cells.push_back({row, pool, shards, true});
      }
    }
  }
  return cells;
}

Job job_of(const Settings& settings, const Cell& cell) {
  const bool crc = cell.row.test == Trial::kCrc;
  return {.pool = settings.pools[cell.pool]->name,
          .test = cell.row.test,
          .context = cell.row.context,
          .threads = cell.row.threads,
          .operations = settings.operations,
          .slot_bytes = crc ? settings.crc_bytes : settings.slot_bytes,
          .milliseconds = settings.milliseconds,
          .reads = crc ? settings.crc_reads : 1,
          .shards = cell.shards,
          .counted = cell.counted};
}

}  // namespace freehold::cli::pools
