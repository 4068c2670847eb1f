// SPDX-License-Identifier: MIT
// A recording in the formats of viewers (cli/report/stack_profile.hpp): speedscope, pprof and collapsed stacks.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/report/stack_profile.hpp"
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

[[nodiscard]] StackProfile stacks_of(const freehold::doctor::Profile& profile);

}  // namespace freehold::cli::doctor
