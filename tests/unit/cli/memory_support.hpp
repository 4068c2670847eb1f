// SPDX-License-Identifier: MIT
// A diagnosis of `freehold doctor --memory` made by hand, of which every figure is known.
#pragma once
#include <string>

#include "tools/doctor/report/memory.hpp"

namespace freehold::tests {

inline constexpr double kMiB = 1 << 20;

// 100 MiB, of which 70 are live data and 25 holes; Freehold holds 20 less, jemalloc fails.
inline doctor::report::MemoryDiagnosis memory_diagnosis() {
  namespace core = freehold::doctor;
  doctor::report::MemoryDiagnosis d;
  d.settings.command = {"/usr/bin/store", "data"};
  d.program = "/usr/bin/store";
  d.machine.cpu_model = "Some CPU";
  d.date = "2026-01-02T03:04:05Z";
  d.seconds = 12;
  d.notes = {"A note."};
  core::MemoryCell own, freehold, jemalloc;
  own.variant.how.name = "system";
  own.trials = {{98 * kMiB, 118 * kMiB, 90 * kMiB, 0, 1.5}, {102 * kMiB, 122 * kMiB, 92 * kMiB, 0, 1.6}};
  freehold.variant.treatment = core::MemoryTreatment::kFreehold;
  freehold.variant.how.name = "freehold";
  freehold.trials = {{80 * kMiB, 100 * kMiB, 70 * kMiB, 0, 1.4}};
  jemalloc.variant.treatment = core::MemoryTreatment::kPeer;
  jemalloc.variant.how.name = "jemalloc";
  jemalloc.failure = "signal 11";
  d.experiment.cells = {own, freehold, jemalloc};
  auto& parts = d.verdict.parts;
  parts[core::MemoryPart::kLive] = 70 * kMiB;
  parts[core::MemoryPart::kHoles] = 25 * kMiB;
  parts[core::MemoryPart::kFiles] = 5 * kMiB;
  parts.untouched_bytes = 3 * kMiB;
  d.verdict.at_peak = parts;
  d.verdict.mean_bytes = 100 * kMiB;
  d.verdict.run_mean = {98 * kMiB, 100 * kMiB, 102 * kMiB};
  d.verdict.run_peak = {118 * kMiB, 120 * kMiB, 122 * kMiB};
  d.verdict.cause = core::MemoryCause::kLeak;
  d.verdict.leak_share = 0.5;
  d.verdict.fixes = {{1, {18 * kMiB, 20 * kMiB, 22 * kMiB}, 20 * kMiB, true, false}, {2, {}, 0, false, true}};
  d.verdict.best_fix = 0;
  core::MemoryRecord record;
  record.mean_live = 70 * kMiB;
  record.peak_live = 90 * kMiB;
  record.end_live = 80 * kMiB;
  for (int i = 0; i < 12; ++i) {
    core::LiveSite site;
    site.place.stacks = {{{{.function = "load", .file = "store.cpp", .line = 10U + static_cast<unsigned>(i), .module = {}},
                           {.function = "main", .file = "main.cpp", .line = 3, .module = {}}},
                          1}};
    site.place.all_stacks = 1;
    site.place.via = "std::vector<int>::push_back(int&&)";
    site.at_peak = (60 - 4.0 * i) * kMiB / 2;
    site.in_mean = site.at_peak / 2;
    site.kept = site.growing = i == 0 ? site.in_mean : 0;
    record.sites.push_back(site);
  }
  for (int i = 0; i < 50; ++i) record.history.push_back({0.1 * i, (20 + i) * kMiB, (40 + i) * kMiB});
  d.experiment.record = record;
  return d;
}

}  // namespace freehold::tests
