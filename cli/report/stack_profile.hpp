// SPDX-License-Identifier: MIT
// Whole stacks with weights in the formats of viewers: speedscope (https://www.speedscope.app), pprof (gzipped protocol
// buffer, https://github.com/google/pprof/blob/main/proto/profile.proto) and collapsed stacks (flamegraph.pl, inferno). For
// everything that the command exports: what the doctor recorded, and heap profiles.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "freehold/doctor/analysis/symbols.hpp"

namespace freehold::cli {

struct StackMeasure {
  std::string name, unit;  // "bytes", "bytes"; "allocations", "count"
};

struct StackRow {
  std::vector<std::uint32_t> frames;  // into StackProfile::frames, innermost first
  std::vector<double> values;         // one for each measure; negative ones in a difference
};

struct StackProfile {
  std::vector<StackMeasure> measures;
  std::size_t shown_first = 0;  // of the measures
  std::vector<freehold::doctor::Frame> frames;
  std::vector<StackRow> rows;
  double seconds = 0;        // that it took; 0: a moment
  std::int64_t time_ns = 0;  // of its end, since 1970
  StackMeasure period_type;  // what a sample stands for; no name: samples differ
  std::uint64_t period = 0;
  std::string exporter = "freehold";
};

// How a viewer names a frame. Viewers make one node of all that has one name, so code without a name is called by its place
// in its file: libx.so+0x1234.
[[nodiscard]] std::string function_of(const freehold::doctor::Frame& frame);

[[nodiscard]] std::string speedscope_of(const StackProfile& profile, const std::string& name);
[[nodiscard]] std::string pprof_of(const StackProfile& profile);
[[nodiscard]] std::string collapsed_of(const StackProfile& profile, std::size_t measure);

}  // namespace freehold::cli
