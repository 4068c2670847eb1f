// SPDX-License-Identifier: MIT
#include "tools/doctor/facts/memory_experiment.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace freehold::doctor {

namespace {
constexpr std::size_t kMostPoints = 200;
}  // namespace

std::optional<MemoryTrial> trial_of(const std::vector<MemorySnapshot>& snapshots, bool is_glibc) {
  if (snapshots.empty()) return std::nullopt;
  const std::vector<double> weights = weights_of(snapshots);
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (all <= 0) return std::nullopt;
  MemoryTrial trial;
  for (std::size_t i = 0; i < snapshots.size(); ++i) {
    const double bytes = snapshots[i].bytes(), share = weights[i] / all;
    trial.mean_bytes += share * bytes;
    trial.peak_bytes = std::max(trial.peak_bytes, bytes);
    trial.files_bytes += share * snapshots[i].files_bytes;
    trial.heap_bytes += share * parts_of(snapshots[i], {}, {}, is_glibc).free_bytes;  // nothing is known to be live
  }
  trial.end_bytes = snapshots.back().bytes();
  return trial;
}

MemoryRecord record_of(const std::vector<MemorySnapshot>& snapshots, const LiveHistory& live, bool is_glibc) {
  MemoryRecord record;
  const std::vector<double> weights = weights_of(snapshots);
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  double peak = -1, most = 0;
  for (std::size_t i = 0; i < snapshots.size(); ++i) {
    const MemoryParts parts = parts_of(snapshots[i], live.at[i], live.seen, is_glibc);
    const double share = all > 0 ? weights[i] / all : 1.0 / static_cast<double>(snapshots.size());
    record.mean.add(parts, share);
    record.heap_bytes += share * parts_of(snapshots[i], {}, {}, is_glibc).free_bytes;
    if (parts.sum() > peak) {
      record.at_peak = parts;
      record.files_at_peak = snapshots[i].files_bytes;
    }
    most = std::max(most, parts.sum() + parts.untouched_bytes);
    peak = std::max(peak, parts.sum());
    if (i % (snapshots.size() / kMostPoints + 1) != 0) continue;
    double bytes = 0;
    for (const LiveData& one : live.at[i]) {
      bytes += one.bytes - one.mapped_rounding;
      for (const LargeBlock& block : one.mapped) bytes += static_cast<double>(block.end - block.begin);
    }
    record.history.push_back({snapshots[i].at_s - snapshots.front().at_s, bytes, parts.sum()});
  }
  record.mean_live = live.mean_bytes;
  record.peak_live = live.peak_bytes;
  record.end_live = live.end_bytes;
  record.mean_largest_block = live.mean_largest_block;
  record.dropped = live.dropped;
  record.sites = live.sites;
  // Estimates from samples: together they are not more than there was.
  if (most > 0 && record.peak_live > most) {
    for (LiveSite& site : record.sites) site.at_peak *= most / record.peak_live;
    record.peak_live = most;
  }
  return record;
}

}  // namespace freehold::doctor
