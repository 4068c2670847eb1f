// SPDX-License-Identifier: MIT
// A recording in the formats of viewers: speedscope (https://www.speedscope.app), pprof (gzipped protocol buffer,
// https://github.com/google/pprof/blob/main/proto/profile.proto) and collapsed stacks (flamegraph.pl, inferno).
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "freehold/doctor/analysis/profile.hpp"

namespace freehold::cli::doctor {

enum class ExportFormat : std::uint8_t { kSpeedscope, kPprof, kCollapsed };

struct Export {
  ExportFormat format{};
  freehold::doctor::Measure measure = freehold::doctor::Measure::kTime;  // of collapsed stacks, which have one
  std::string file;
};

// "speedscope=FILE", "pprof=FILE", "collapsed=FILE", "collapsed:bytes=FILE". Throws Failure, also for a file that certainly
// cannot be written.
[[nodiscard]] std::vector<Export> exports_of(std::span<const std::string> texts);

[[nodiscard]] std::string exported(const freehold::doctor::Profile& profile, const Export& how, const std::string& name);

[[nodiscard]] std::string speedscope_of(const freehold::doctor::Profile& profile, const std::string& name);
// `time_ns`: of the recording's end, since 1970.
[[nodiscard]] std::string pprof_of(const freehold::doctor::Profile& profile, std::int64_t time_ns);
[[nodiscard]] std::string collapsed_of(const freehold::doctor::Profile& profile, freehold::doctor::Measure measure);

}  // namespace freehold::cli::doctor
