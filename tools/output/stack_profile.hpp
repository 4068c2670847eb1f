// SPDX-License-Identifier: MIT
// Whole stacks with weights as pprof and speedscope read them: a gzipped protocol buffer,
// https://github.com/google/pprof/blob/main/proto/profile.proto. The doctor's recordings and heap profiles are written so.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/doctor/facts/symbols.hpp"

namespace freehold::inline tools {

struct StackMeasure {
  std::string name, unit;  // "bytes", "bytes"; "allocations", "count"
};

struct StackRow {
  std::vector<std::uint32_t> frames;  // into StackProfile::frames, innermost first
  std::vector<double> values;         // one for each measure; negative ones in a difference
  std::string heap{};                 // the private heap that its blocks lie in; empty: none. pprof's label
};

struct StackProfile {
  std::vector<StackMeasure> measures;
  std::size_t shown_first = 0;  // index of the measure that is shown first
  std::vector<freehold::doctor::Frame> frames;
  std::vector<StackRow> rows;
  double seconds = 0;        // that it took; 0: a moment
  std::int64_t time_ns = 0;  // time of its end, since 1970
  StackMeasure period_type;  // a sample stands for so much; no name: samples differ
  std::uint64_t period = 0;
};

[[nodiscard]] std::string pprof_of(const StackProfile& profile);

}  // namespace freehold::inline tools
