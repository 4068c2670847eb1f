// SPDX-License-Identifier: MIT
// The figures behind a verdict, a sentence each.
#include <fmt/format.h>

#include <algorithm>

#include "tools/doctor/facts/attribution.hpp"
#include "tools/doctor/facts/derived.hpp"
#include "tools/doctor/facts/work_growth.hpp"
#include "tools/doctor/report/format.hpp"
#include "tools/doctor/report/verdict_text.hpp"

namespace freehold::doctor::report {
namespace {

constexpr double kWorthAWord = 0.02;  // shares below this do not help to understand a verdict

// Of things that have been counted by place: "nearly all", "most", "a third".
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

void add_evidence(const Diagnosis& diagnosis, Sentences& out) {
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

// Whether others disturbed the trials, and the verdict was held against that.
bool verdict_stands(const Verdict& verdict) { return verdict.disturbance > kBusyFrom && verdict.cause != Cause::kUndecided; }

}  // namespace

std::vector<std::string> evidence_of(const Diagnosis& diagnosis) {
  Sentences sentences;
  add_scaling(diagnosis, sentences);
  add_instructions(diagnosis, sentences);
  add_evidence(diagnosis, sentences);
  if (const std::string_view basis = basis_of(diagnosis.verdict); !basis.empty()) sentences.emplace_back(basis);
  if (diagnosis.verdict.noisy)
    sentences.push_back(fmt::format(
        "Other processes used the CPUs during the measurement; their time is subtracted from these ratios, but not from the "
        "measured times{}.",
        verdict_stands(diagnosis.verdict) ? ", and the limits allow for it" : ": treat both with caution"));
  return sentences;
}

}  // namespace freehold::doctor::report
