// SPDX-License-Identifier: MIT
// Sentences beside the verdict: failures, noise, memory, the cost of recording.
#include "tools/doctor/report/verdict_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/doctor/facts/attribution.hpp"
#include "tools/doctor/facts/derived.hpp"
#include "tools/doctor/report/format.hpp"
#include "tools/doctor/verdict/causes.hpp"
#include "tools/support/units.hpp"

namespace freehold::doctor::report {
namespace {

constexpr double kBusyControl = 1.15;            // arithmetic alone took so much longer on all CPUs at once
constexpr double kMemoryChange = 0.1;            // share of the peak; and
constexpr double kMemoryChangeBytes = 16 << 20;  // less is not worth a word
constexpr std::size_t kFewTrials = 3;
constexpr std::uint64_t kManyLines = 16;

using Sentences = std::vector<std::string>;

void add_failures(const Experiment& experiment, Sentences& out) {
  for (const Cell& cell : experiment.cells) {
    if (cell.failure.empty()) continue;
    const std::string where = describe(cell.setting);
    out.push_back(cell.variant == 0 ? fmt::format("The unmodified program failed with {}: {}.", where, cell.failure)
                                    : fmt::format("With {} and {} the program ended otherwise than it does by itself: {}.",
                                                  text_of(experiment.variants[cell.variant]), where, cell.failure));
  }
}

void add_untried(const Diagnosis& diagnosis, Sentences& out) {
  const Experiment& experiment = diagnosis.experiment;
  std::string list;
  for (std::size_t variant = 0; variant < experiment.variants.size(); ++variant) {
    if (!was_tried(experiment, variant))
      list += fmt::format("{}{}", list.empty() ? "" : ", ", text_of(experiment.variants[variant]));
  }
  if (list.empty()) return;
  const Cell* const on_all = experiment.find(0, diagnosis.verdict.all);
  if (diagnosis.recorded != nullptr && on_all != nullptr && !on_all->trials.empty() &&
      no_malloc_can_help(*diagnosis.recorded, *on_all))
    out.push_back(
        fmt::format("Not tried: {}. The program takes next to no time in malloc, so that they cannot help.", list));
  else
    out.push_back(diagnosis.signal != 0 ? fmt::format("It was interrupted before it had tried {}.", list)
                                        : fmt::format("There was no time for {}; a longer --budget includes it.", list));
}

void add_noise(const Diagnosis& diagnosis, Sentences& out) {
  const Experiment& experiment = diagnosis.experiment;
  if (diagnosis.verdict.noisy) {
    std::string text = "The machine was busy with something else";
    if (experiment.control.compute > kBusyControl)
      text += fmt::format(" (plain arithmetic took {:.1f} times as long on all CPUs at once)", experiment.control.compute);
    out.push_back(text + ". A quiet machine or --repeat gives better figures.");
  }
  std::size_t least = 1000;
  for (const Cell& cell : experiment.cells) {
    if (!cell.trials.empty()) least = std::min(least, cell.trials.size());
  }
  if (least < kFewTrials)
    out.push_back(fmt::format("Some settings were run only {}: their limits are rough.", least == 1 ? "once" : "twice"));
}

void add_memory(const Diagnosis& diagnosis, Sentences& out) {
  const auto own = if_measured(peak_bytes, diagnosis.experiment.find(0, diagnosis.verdict.all));
  std::string list;
  for (const Fix* fix : best_first(diagnosis.verdict)) {
    const double change = fix->memory.value - 1;
    if (fix->memory.value <= 0 || std::abs(change) < kMemoryChange) continue;
    if (own && std::abs(change) * *own < kMemoryChangeBytes) continue;
    list += fmt::format("{}{:.1f} times with {}", list.empty() ? "" : ", ", fix->memory.value,
                        text_of(diagnosis.experiment.variants[fix->variant]));
  }
  if (!list.empty()) out.push_back(fmt::format("Its peak memory would change: {}.", list));
}

void add_recording(const Diagnosis& diagnosis, Sentences& out) {
  if (diagnosis.recorded == nullptr) return;
  if (const auto cost = recording_cost(diagnosis)) {
    out.push_back(*cost < 0.01 ? std::string("Recording did not slow the program down measurably.")
                               : fmt::format("Recording made the program {} slower; shares of its time have that taken off.",
                                             percent_text(*cost)));
  }
  if (diagnosis.recorded->dropped > 0)
    out.push_back(fmt::format("{} records found no room: the call sites below are a part of all.",
                              count_text(static_cast<double>(diagnosis.recorded->dropped))));
}

// Lines that blocks of different threads share, where it did not show in the time.
void add_hazard(const Diagnosis& diagnosis, Sentences& out) {
  const Attribution* const recorded = diagnosis.recorded.get();
  if (recorded == nullptr || diagnosis.verdict.cause == Cause::kAllocatorFalseSharing) return;
  if (recorded->lines_shared_for_long < kManyLines || recorded->sharing.empty()) return;
  const SharingSites& first = recorded->sharing.front();
  out.push_back(fmt::format(
      "Blocks of different threads lay on the same cache line for long, {} lines of those that were watched, for "
      "example from {}. It costs nothing unless both are written often.",
      count_text(static_cast<double>(recorded->lines_shared_for_long)),
      short_text(first.places[0].frame(), first.places[1].frame())));
}

void add_quota(const Diagnosis& diagnosis, Sentences& out) {
  const Experiment& experiment = diagnosis.experiment;
  if (diagnosis.verdict.cause == Cause::kCpuQuota) return;
  if (experiment.quota_cpus > 0 && experiment.quota_cpus < experiment.affinity_cpus)
    out.push_back(fmt::format("A control group allows {:.3g} CPU{} here, though {} are visible.", experiment.quota_cpus,
                              experiment.quota_cpus == 1 ? "" : "s", experiment.affinity_cpus));
}

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

std::vector<std::string> findings_of(const Diagnosis& diagnosis) {
  Sentences out;
  if (!diagnosis.experiment.complete)
    out.emplace_back(diagnosis.signal != 0 ? "Interrupted: this is what was finished until then."
                                           : "Time ran out: this is what was finished until then.");
  add_untried(diagnosis, out);
  add_failures(diagnosis.experiment, out);
  add_noise(diagnosis, out);
  add_quota(diagnosis, out);
  add_memory(diagnosis, out);
  add_hazard(diagnosis, out);
  add_recording(diagnosis, out);
  return out;
}

std::string text_of(const OwnAllocator& own, const Diagnosis& diagnosis) {
  std::string text = fmt::format("{} brings {} (in {}): {}.", program_name(diagnosis), own.name, file_name(own.file),
                                 how_much(own, diagnosis));
  if (!own.use_malloc.empty()) text += fmt::format(" With {} it leaves all of them to malloc.", own.use_malloc);
  return text;
}

}  // namespace freehold::doctor::report
