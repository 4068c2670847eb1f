// SPDX-License-Identifier: MIT
#include "cli/doctor/export.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "cli/support/failure.hpp"
#include "cli/support/output_file.hpp"

namespace freehold::cli::doctor {
namespace {
using namespace freehold::doctor;

Export export_of(const std::string& text) {
  const std::size_t equals = text.find('='), colon = std::min(text.find(':'), equals);
  const auto refuse = [&text](const std::string& why) {
    throw Failure(kExitRefused, fmt::format("--export: '{}': {}", printable(text), why));
  };
  if (equals == std::string::npos) refuse("which file? speedscope=FILE, pprof=FILE, collapsed=FILE or collapsed:bytes=FILE");
  const std::string format = text.substr(0, colon);
  Export one;
  one.file = text.substr(equals + 1);
  if (format == "speedscope")
    one.format = ExportFormat::kSpeedscope;
  else if (format == "pprof")
    one.format = ExportFormat::kPprof;
  else if (format == "collapsed")
    one.format = ExportFormat::kCollapsed;
  else
    refuse(fmt::format("'{}' is not one of speedscope, pprof, collapsed", printable(format)));
  if (colon == equals) return one;
  const std::string wanted = text.substr(colon + 1, equals - colon - 1);
  std::string names;
  for (std::size_t i = 0; i < kMeasures; ++i) {
    const auto measure = static_cast<Measure>(i);
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name_of(measure));
    if (name_of(measure) != wanted || one.format != ExportFormat::kCollapsed) continue;
    one.measure = measure;
    return one;
  }
  refuse(one.format != ExportFormat::kCollapsed ? format + " has all measures; leave this one out"
                                                : fmt::format("'{}' is not one of {}", printable(wanted), names));
  __builtin_unreachable();
}

}  // namespace

std::vector<Export> exports_of(std::span<const std::string> texts) {
  std::vector<Export> exports;
  for (const std::string& text : texts) {
    exports.push_back(export_of(text));
    check_writable(exports.back().file);
  }
  return exports;
}

std::string exported(const Profile& profile, const Export& how, const std::string& name) {
  switch (how.format) {
    case ExportFormat::kSpeedscope: return speedscope_of(stacks_of(profile), name);
    case ExportFormat::kPprof: {
      StackProfile stacks = stacks_of(profile);
      const auto now = std::chrono::system_clock::now().time_since_epoch();
      stacks.time_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
      return pprof_of(stacks);
    }
    case ExportFormat::kCollapsed: return collapsed_of(stacks_of(profile), static_cast<std::size_t>(how.measure));
  }
  __builtin_unreachable();
}

StackProfile stacks_of(const Profile& profile) {
  StackProfile stacks;
  for (std::size_t i = 0; i < kMeasures; ++i) {
    const auto measure = static_cast<Measure>(i);
    stacks.measures.push_back({std::string(name_of(measure)), std::string(unit_of(measure))});
  }
  stacks.shown_first = static_cast<std::size_t>(Measure::kTime);
  stacks.frames = profile.frames;
  for (const ProfileRow& row : profile.rows) stacks.rows.push_back({row.frames, {row.values.begin(), row.values.end()}});
  stacks.seconds = profile.seconds;
  stacks.exporter = "freehold doctor";
  return stacks;
}

}  // namespace freehold::cli::doctor
