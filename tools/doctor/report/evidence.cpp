// SPDX-License-Identifier: MIT
// The figures behind a verdict, a sentence each, and what is to be known beside it: failures, noise, memory, the cost of
// recording.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/doctor/facts/attribution.hpp"
#include "tools/doctor/facts/derived.hpp"
#include "tools/doctor/facts/facts.hpp"
#include "tools/doctor/facts/work_growth.hpp"
#include "tools/doctor/report/format.hpp"
#include "tools/doctor/report/words.hpp"
#include "tools/support/units.hpp"

namespace freehold::doctor::report {
namespace {
constexpr double kWorthAWord = 0.02;  // shares below this do not help to understand a verdict

// Names a share of things that were counted by place: "nearly all", "most", "a third".
std::string portion(double share) {
  if (share >= 0.9) return "nearly all";
  if (share >= 0.6) return "most";
  if (share >= 0.4) return "about half";
  return fmt::format("{} of them", percent_text(share));
}

// "on 4 CPUs", "with 4 threads"
std::string at(const Setting& setting) {
  return fmt::format("{} {}", setting.threads != 0 && setting.copies == 1 ? "with" : "on", describe(setting));
}

using Sentences = std::vector<std::string>;

void add_scaling(const Diagnosis& diagnosis, Sentences& out) {
  const Verdict& verdict = diagnosis.verdict;
  if (!was_compared(verdict) || verdict.speedup.value <= 0) return;
  const std::string speed = fmt::format("{} it runs {} as fast as {}, where {:.3g} would be ideal", at(verdict.all),
                                        times_text(verdict.speedup), at(verdict.alone), verdict.ideal_speedup);
  std::string sentence = speed;
  sentence[0] = static_cast<char>(sentence[0] == 'o' ? 'O' : 'W');
  if (verdict.cause != Cause::kNone && !verdict.one_thread && verdict.lost.value > kWorthAWord)
    sentence += fmt::format(": {} of its time there is lost", percent_text(verdict.lost));
  out.push_back(sentence + '.');
}

void add_instructions(const Diagnosis& diagnosis, Sentences& out) {
  const auto growth = doctor::instruction_growth_of(diagnosis.experiment);
  if (!growth || !was_compared(diagnosis.verdict)) return;
  out.push_back(fmt::format("Its instructions were counted: {} it executes {:.2f} times as many as {}.",
                            at(diagnosis.verdict.all), *growth, at(diagnosis.verdict.alone)));
}

void add_allocator_time(const Diagnosis& diagnosis, Sentences& out) {
  const Attribution& recorded = *diagnosis.recorded;
  std::string text = fmt::format("malloc and free take {} of its CPU time", percent_text(recorded.cpu_share));
  if (recorded.blocked_share > kWorthAWord)
    text += fmt::format(", and its threads sleep in them for {} of their time", percent_text(recorded.blocked_share));
  out.push_back(text + '.');
}

void add_remote_frees(const Attribution& recorded, Sentences& out) {
  if (recorded.remote_share < kWorthAWord) return;
  std::string text =
      fmt::format("{} of the frees cross threads: another thread allocated the block", percent_text(recorded.remote_share));
  if (!recorded.remote_sites.empty()) {
    const RemoteSites& first = recorded.remote_sites.front();
    if (first.site < recorded.sites.size())
      text += fmt::format(", {} at {}", portion(first.share), short_text(recorded.sites[first.site].place.frame()));
  }
  out.push_back(text + '.');
}

void add_false_sharing(const Attribution& recorded, Sentences& out) {
  if (recorded.shared_line_share < kWorthAWord) return;
  std::string text =
      fmt::format("{} of the cache lines with blocks on them are shared by threads that have nothing else in common",
                  percent_text(recorded.shared_line_share));
  if (!recorded.sharing.empty()) {
    const SharingSites& first = recorded.sharing.front();
    text += fmt::format(", most with blocks from {}", short_text(first.places[0].frame(), first.places[1].frame()));
  }
  out.push_back(text + '.');
}

void add_own_waits(const Attribution& recorded, Sentences& out) {
  if (recorded.lock_wait_share < kWorthAWord) return;
  std::string text =
      fmt::format("Its threads wait for the program's locks for {} of their time", percent_text(recorded.lock_wait_share));
  if (!recorded.lock_waits.empty() && recorded.lock_wait_share > 0) {
    const WaitSite& first = recorded.lock_waits.front();
    text += fmt::format(", {} at {}", portion(std::min(first.share / recorded.lock_wait_share, 1.0)),
                        short_text(first.place.frame()));
  }
  out.push_back(text + '.');
}

void add_page_faults(const Diagnosis& diagnosis, Sentences& out) {
  const auto faults = if_measured(page_faults_per_second, diagnosis.experiment.find(0, diagnosis.verdict.all));
  if (!faults) return;
  std::string text = fmt::format("The kernel hands it {} pages a second", count_text(*faults));
  if (const auto best = diagnosis.verdict.best_fix) {
    const std::size_t variant = diagnosis.verdict.fixes[*best].variant;
    if (const auto with = if_measured(page_faults_per_second, diagnosis.experiment.find(variant, diagnosis.verdict.all)))
      text += fmt::format(", {} with {}", count_text(*with), text_of(diagnosis.experiment.variants[variant]));
  }
  out.push_back(text + '.');
}

void add_copies(const Diagnosis& diagnosis, Sentences& out) {
  const auto slowdown = slowdown_of_copies(diagnosis.experiment);
  if (!slowdown) return;
  out.push_back(fmt::format(
      "{} processes of it, each alone on a CPU, share nothing and still need {:.1f} times the CPU time of one alone.",
      slowdown->copies, slowdown->ratio));
}

void add_busy_cpus(const Diagnosis& diagnosis, Sentences& out) {
  const Setting& all = diagnosis.verdict.all;
  const auto busy = if_measured(busy_cpus, diagnosis.experiment.find(0, all));
  if (!busy) return;
  const double waiting = diagnosis.experiment.code.team_waiting;
  out.push_back(fmt::format(
      "Of {} that it may use it keeps {:.1f} busy{}.", counted(all.cpus, "CPU"), *busy,
      waiting < kWorthAWord ? ""
                            : fmt::format(", {} of that with loops in which OpenMP's threads wait", percent_text(waiting))));
}

void add_threads_and_quota(const Diagnosis& diagnosis, Sentences& out) {
  const Experiment& experiment = diagnosis.experiment;
  std::string text;
  if (experiment.most_threads > 1) text = fmt::format("It starts {}", counted(experiment.most_threads, "thread"));
  const auto throttled = if_measured(throttled_share, experiment.find(0, diagnosis.verdict.all));
  if (throttled && *throttled > kWorthAWord)
    text += fmt::format("{} stands still for {} of its time because its quota is used up", text.empty() ? "It" : " and",
                        percent_text(*throttled));
  if (!text.empty()) out.push_back(text + '.');
}

void add_less_memory(const Diagnosis& diagnosis, Sentences& out) {
  for (const Fix& fix : diagnosis.verdict.fixes) {
    if (fix.failed || fix.memory.value <= 0 || fix.memory.value > 0.8) continue;
    out.push_back(fmt::format("With {} its peak memory is {} what it was.",
                              text_of(diagnosis.experiment.variants[fix.variant]), times_text(fix.memory)));
  }
}

void add_figures(const Diagnosis& diagnosis, Sentences& out) {
  const Cause cause = diagnosis.verdict.cause;
  const Attribution* const recorded = diagnosis.recorded.get();
  if (cause == Cause::kPageFaults || cause == Cause::kOwnPageFaults) add_page_faults(diagnosis, out);
  if (cause == Cause::kMemoryBandwidth) add_copies(diagnosis, out);
  if (cause == Cause::kSerial) add_busy_cpus(diagnosis, out);
  if (cause == Cause::kCpuQuota) add_threads_and_quota(diagnosis, out);
  if (cause == Cause::kArenaBloat) add_less_memory(diagnosis, out);
  if (recorded == nullptr) return;
  if (recorded->allocating.calls > 0) add_allocator_time(diagnosis, out);
  if (blames_allocator(cause)) {
    add_remote_frees(*recorded, out);
    add_false_sharing(*recorded, out);
  }
  if (cause == Cause::kOwnLock || cause == Cause::kMixed || cause == Cause::kSerial) add_own_waits(*recorded, out);
}

std::string_view basis_of(const Verdict& verdict) {
  if (!verdict.rests_on) return {};
  switch (*verdict.rests_on) {
    case Basis::kTime: return "This rests on measured times alone.";
    case Basis::kCounts: return "This rests on what was counted, not on measured times.";
    case Basis::kBoth: return "What was counted and the measured times say the same.";
  }
  __builtin_unreachable();
}

// Says whether others disturbed the trials, and the verdict was held against that.
bool verdict_stands(const Verdict& verdict) { return verdict.disturbance > kBusyFrom && verdict.cause != Cause::kUndecided; }

// ---- beside the verdict

constexpr double kBusyControl = 1.15;            // arithmetic alone took so much longer on all CPUs at once
constexpr double kMemoryChange = 0.1;            // share of the peak; and
constexpr double kMemoryChangeBytes = 16 << 20;  // less is not worth a word
constexpr std::size_t kFewTrials = 3;
constexpr std::uint64_t kManyLines = 16;

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

std::vector<std::string> evidence_of(const Diagnosis& diagnosis) {
  Sentences sentences;
  add_scaling(diagnosis, sentences);
  // How sure the answer is stands beside its first figure.
  if (const std::string_view basis = basis_of(diagnosis.verdict); !basis.empty()) {
    if (sentences.empty())
      sentences.emplace_back(basis);
    else
      sentences.front().append(" ").append(basis);
  }
  add_instructions(diagnosis, sentences);
  add_figures(diagnosis, sentences);
  if (diagnosis.verdict.noisy)
    sentences.push_back(fmt::format(
        "Other processes used the CPUs during the measurement; their time is subtracted from these ratios, but not from the "
        "measured times{}.",
        verdict_stands(diagnosis.verdict) ? ", and the limits allow for it" : ": treat both with caution"));
  return sentences;
}

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

}  // namespace

std::optional<double> recording_cost(const Diagnosis& diagnosis) {
  const auto sweep = diagnosis.experiment.sweep();
  if (sweep.empty() || !diagnosis.recorded_trial) return std::nullopt;
  const auto before = if_measured(cost, diagnosis.experiment.find(0, sweep.back()));
  return before ? std::optional(diagnosis.recorded_trial->cost() / *before - 1) : std::nullopt;
}

std::string text_of(const OwnAllocator& own, const Diagnosis& diagnosis) {
  std::string text = fmt::format("{} brings {} (in {}): {}.", program_name(diagnosis), own.name, file_name(own.file),
                                 how_much(own, diagnosis));
  if (!own.use_malloc.empty()) text += fmt::format(" With {} it leaves all of them to malloc.", own.use_malloc);
  return text;
}

void add_evidence(const Diagnosis& diagnosis, Words& words) {
  if (!own_failure(diagnosis.experiment)) words.because = evidence_of(diagnosis);
  words.findings = findings_of(diagnosis);
  words.notes = diagnosis.notes;
  for (const OwnAllocator& own : diagnosis.own_allocators)
    if (own.reached.value_or(0) < 1) words.notes.push_back(text_of(own, diagnosis));
}

}  // namespace freehold::doctor::report
