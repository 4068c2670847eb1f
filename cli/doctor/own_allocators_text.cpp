// SPDX-License-Identifier: MIT
#include "cli/doctor/own_allocators_text.hpp"

#include <fmt/format.h>

#include "cli/doctor/format.hpp"
#include "cli/doctor/verdict_text.hpp"
#include "cli/support/units.hpp"
#include "freehold/doctor/analysis/attribution.hpp"
#include "freehold/doctor/analysis/derived.hpp"

namespace freehold::cli::doctor {
namespace {
using namespace freehold::doctor;

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string how_much(const OwnAllocator& own, const Diagnosis& diagnosis) {
  if (own.reached)
    return fmt::format("a preload reaches {} of its allocations ({} calls of malloc and {} of that allocator were counted)",
                       percent_text(*own.reached), count_text(static_cast<double>(own.malloc_calls.value_or(0))),
                       count_text(static_cast<double>(own.calls.value_or(0))));
  std::string text = "a preload does not reach what that takes";
  const auto peak = if_measured(peak_bytes, diagnosis.experiment.find(0, diagnosis.verdict.all));
  if (diagnosis.recorded != nullptr && peak && *peak > 0)
    text += fmt::format("; blocks of malloc hold at most {} of its {}",
                        bytes_text(static_cast<std::uint64_t>(diagnosis.recorded->peak_live_bytes)),
                        bytes_text(static_cast<std::uint64_t>(*peak)));
  if (!own.why_not_counted.empty())
    text += fmt::format("; how many allocations that are was not counted: {}", own.why_not_counted);
  return text;
}

}  // namespace

std::string text_of(const OwnAllocator& own, const Diagnosis& diagnosis) {
  std::string text = fmt::format("{} brings {} (in {}): {}.", program_name(diagnosis), own.name, file_name(own.file),
                                 how_much(own, diagnosis));
  if (!own.use_malloc.empty()) text += fmt::format(" With {} it leaves all of them to malloc.", own.use_malloc);
  return text;
}

}  // namespace freehold::cli::doctor
