// SPDX-License-Identifier: MIT
#include "tools/doctor/report/format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

namespace freehold::doctor::report {
namespace {
using doctor::Estimate;

constexpr std::size_t kLongestFunction = 60;

bool has_range(const Estimate& estimate) { return estimate.high > estimate.low; }

double rounded(double value, double step) { return std::round(value / step) * step; }

// Recommendations of percents; a range is told by three figures at least.
double percent_step(const Estimate& percents) {
  const double width = percents.high - percents.low;
  return width >= 25 ? 10 : width >= 12 ? 5 : 1;
}

// Decimals of a ratio: a step of less than two thirds of the range would be guessed. A range that reaches down to one keeps
// a decimal: "1 times" would not tell faster from slower.
int decimals_of(const Estimate& ratio) {
  const double width = has_range(ratio) ? ratio.high - ratio.low : 0.15;
  return width >= 3 && ratio.low >= 1.5 ? 0 : width >= 0.15 ? 1 : 2;
}

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

std::string percent_text(double share) {
  if (share > 0 && share < 0.005) return "less than 1%";
  return fmt::format("{:.0f}%", 100 * share);
}

std::string percent_text(const Estimate& share) {
  if (!has_range(share)) return percent_text(share.value);
  const Estimate percents{100 * share.low, 100 * share.value, 100 * share.high};
  const double step = percent_step(percents);
  return fmt::format("{:.0f}% ({:.0f} to {:.0f}%)", rounded(percents.value, step), rounded(percents.low, step),
                     rounded(percents.high, step));
}

std::string percent_value_text(const Estimate& share) {
  if (!has_range(share)) return percent_text(share.value);
  const double step = percent_step({100 * share.low, 100 * share.value, 100 * share.high});
  return fmt::format("{:.0f}%", rounded(100 * share.value, step));
}

std::string value_text(const Estimate& ratio) { return fmt::format("{:.{}f}", ratio.value, decimals_of(ratio)); }

std::string range_text(const Estimate& ratio) {
  if (!has_range(ratio)) return {};
  return fmt::format("{0:.{2}f}–{1:.{2}f}", ratio.low, ratio.high, decimals_of(ratio));
}

std::string times_text(const Estimate& ratio) {
  if (!has_range(ratio)) return value_text(ratio) + " times";
  return fmt::format("{0:.{3}f} times ({1:.{3}f} to {2:.{3}f})", ratio.value, ratio.low, ratio.high, decimals_of(ratio));
}

std::string seconds_text(double seconds) {
  static constexpr std::array kUnits{"s", "ms", "µs", "ns"};
  std::size_t unit = 0;
  for (; seconds > 0 && seconds < 0.9995 && unit + 1 < kUnits.size(); ++unit) seconds *= 1000;
  const int decimals = unit == kUnits.size() - 1 || seconds >= 99.95 ? 0 : seconds >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}", seconds, decimals, kUnits[unit]);
}

std::string count_text(double count) {
  if (count >= 999.5e6) return fmt::format("{:.1f} thousand million", 1e-9 * count);
  if (count >= 999.5e3) return fmt::format("{:.1f} million", 1e-6 * count);
  const auto whole = static_cast<std::uint64_t>(std::llround(std::max(count, 0.0)));
  return whole < 1000 ? std::to_string(whole) : fmt::format("{},{:03}", whole / 1000, whole % 1000);
}

std::string counted(std::uint64_t n, std::string_view thing) { return fmt::format("{} {}{}", n, thing, n == 1 ? "" : "s"); }

std::string short_text(const doctor::Frame& frame) {
  if (!frame.file.empty()) return fmt::format("{}:{}", base_name(frame.file), frame.line);
  std::string function = frame.function.empty() ? "an unknown function" : frame.function;
  if (function.size() > kLongestFunction) function = function.substr(0, kLongestFunction) + "…";
  return frame.module.empty() ? function : fmt::format("{} in {}", function, base_name(frame.module));
}

std::string short_text(const doctor::Frame& one, const doctor::Frame& other) {
  const std::string first = short_text(one), second = short_text(other);
  return first == second ? first : fmt::format("{} and {}", first, second);
}

std::string describe(const Setting& setting) {
  if (setting.copies > 1) return fmt::format("{} copies", setting.copies);
  return setting.threads != 0 ? counted(setting.threads, "thread") : counted(setting.cpus, "CPU");
}

std::string describe(const Experiment& experiment, std::size_t variant, const Setting& setting) {
  return fmt::format("{}, {}", experiment.variants[variant].name, describe(setting));
}

std::string_view text_of(Cause cause) noexcept {
  switch (cause) {
    case Cause::kNone: return "nothing";
    case Cause::kAllocatorLock: return "locks inside malloc and free";
    case Cause::kRemoteFrees: return "blocks that other threads free";
    case Cause::kAllocatorFalseSharing: return "cache lines that malloc makes threads share";
    case Cause::kPageFaults: return "memory that malloc takes and gives back";
    case Cause::kArenaBloat: return "memory that arenas hold";
    case Cause::kOwnLock: return "its own locks";
    case Cause::kOwnSharing: return "data that its threads share";
    case Cause::kOwnPageFaults: return "memory that it maps and unmaps itself";
    case Cause::kOwnMalloc: return "its own malloc";
    case Cause::kMemoryBandwidth: return "memory bandwidth";
    case Cause::kCpuQuota: return "its CPU quota";
    case Cause::kSerial: return "parts that run alone";
    case Cause::kMixed: return "several causes";
    case Cause::kUndecided: return "not known";
  }
  __builtin_unreachable();
}

std::string text_of(const Variant& variant) {
  switch (variant.treatment) {
    case Treatment::kFreehold: return "Freehold";
    case Treatment::kPadded: return "blocks a cache line apart";
    case Treatment::kNone:
    case Treatment::kPeer: return variant.name;
    case Treatment::kCappedArenas:
    case Treatment::kHighThresholds: break;
  }
  const std::size_t comma = variant.name.find(", ");
  const std::string_view explained = variant.treatment == Treatment::kCappedArenas ? " (memory pools)" : "";
  return comma == std::string::npos
             ? variant.name
             : fmt::format("{} with {}{}", variant.name.substr(0, comma), variant.name.substr(comma + 2), explained);
}

std::vector<const Fix*> best_first(const Verdict& verdict) {
  std::vector<const Fix*> fixes;
  for (const Fix& fix : verdict.fixes) {
    if (fix.failed || fix.gain.value > 0) fixes.push_back(&fix);
  }
  std::ranges::sort(fixes, [](const Fix* a, const Fix* b) {
    return std::tuple(a->failed, -a->gain.value, a->variant) < std::tuple(b->failed, -b->gain.value, b->variant);
  });
  return fixes;
}

std::string_view judgement_of(const Fix& fix) noexcept {
  if (fix.failed) return "the program fails";
  if (fix.helps) return "helps";
  if (!is_beyond_chance(fix)) return "may be chance";
  return fix.gain.value > 1 ? "probably helps a little" : "does harm";
}

bool is_beyond_chance(const Fix& fix) noexcept {
  return fix.helps || (fix.gain.low > 1 && fix.gain.high > 1) || (fix.gain.low < 1 && fix.gain.high < 1);
}

}  // namespace freehold::doctor::report
