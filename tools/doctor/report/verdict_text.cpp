// SPDX-License-Identifier: MIT
#include "tools/doctor/report/verdict_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "tools/doctor/facts/attribution.hpp"
#include "tools/doctor/facts/derived.hpp"
#include "tools/doctor/report/format.hpp"

namespace freehold::doctor::report {
namespace {

constexpr double kNotWorthTrying = 0.03;  // faster at most: nobody needs to try other allocators

// ---- what any allocator could do

std::string_view source_of_bound(const Diagnosis& diagnosis) {
  if (diagnosis.recorded == nullptr) return "as samples of its code say";
  return diagnosis.experiment.delayed.empty() ? "as malloc's recorded share of its time says"
                                              : "found by making malloc and free slower";
}

std::string_view why_without_bound(const Diagnosis& diagnosis) {
  const auto says_why = [](const std::string& note) {
    return note.starts_with("Nothing was recorded") || note.starts_with("The recorded run");
  };
  if (std::ranges::none_of(diagnosis.notes, says_why))
    return "there was no time to record its malloc. A longer --budget includes it";
  return diagnosis.experiment.code.known
             ? "its malloc could not be recorded, and its threads sleep in locks, which may be malloc's"
             : "its malloc could not be recorded, and its code could not be sampled";
}

std::string bound_of(const Diagnosis& diagnosis) {
  const Verdict& verdict = diagnosis.verdict;
  if (!verdict.most_gain && diagnosis.recorded != nullptr) return {};
  if (!verdict.most_gain)
    return fmt::format("How much any allocator could do is not known: {}.", why_without_bound(diagnosis));
  const double most = verdict.most_gain->high - 1;
  std::string text = fmt::format("No allocator can make it more than {} faster, {}", percent_text(std::max(most, 0.01)),
                                 source_of_bound(diagnosis));
  if (most <= kNotWorthTrying) text += ": there is no need to try others";
  return text + '.';
}

// ---- what was tried

std::string effect(const Fix& fix) {
  if (fix.failed) return "makes the program fail";
  if (!is_beyond_chance(fix)) {
    const std::string range = range_text(fix.gain);
    return range.empty() ? "no clear difference" : fmt::format("no clear difference ({})", range);
  }
  return times_text(fix.gain) + " as fast";
}

std::string tried_of(const Diagnosis& diagnosis) {
  std::string text;
  for (const Fix* fix : best_first(diagnosis.verdict))
    text += fmt::format("{}{} {}", text.empty() ? "Tried: " : ", ", text_of(diagnosis.experiment.variants[fix->variant]),
                        effect(*fix));
  return text.empty() ? text : text + '.';
}

// ---- what to do

std::string use_of(const Diagnosis& diagnosis, const Fix& fix) {
  const Variant& variant = diagnosis.experiment.variants[fix.variant];
  switch (variant.treatment) {
    case Treatment::kNone: return {};
    case Treatment::kFreehold: return "run it with Freehold, or link Freehold into it";
    case Treatment::kCappedArenas:
    case Treatment::kHighThresholds: return fmt::format("run it with {}", text_of(variant));
    case Treatment::kPadded: return "give the blocks that threads hold a cache line each (alignas(64))";
    case Treatment::kPeer: return fmt::format("run it with {}", variant.name);
  }
  __builtin_unreachable();
}

// The verdict prefers Freehold among those that the trials cannot tell apart: then the one with the best figure.
std::string as_good_of(const Diagnosis& diagnosis) {
  const Verdict& verdict = diagnosis.verdict;
  if (!verdict.best_fix) return {};
  const Fix& fix = verdict.fixes[*verdict.best_fix];
  for (const Fix* other : best_first(verdict)) {
    if (other == &fix) break;
    if (other->helps)
      return fmt::format(" {} may be faster: the trials cannot tell them apart.",
                         text_of(diagnosis.experiment.variants[other->variant]));
  }
  return {};
}

std::string_view way_out_of(const Diagnosis& diagnosis) {
  const Verdict& verdict = diagnosis.verdict;
  if (is_work_unclear(diagnosis))
    return "say whether threads share the work (--work fixed) or each brings its own (--work per-thread)";
  if (verdict.one_thread && verdict.cause == Cause::kSerial) return "divide its work among threads, if more CPUs shall help";
  if (verdict.doubt == Doubt::kNoProcesses || verdict.doubt == Doubt::kNoPadding) return "give it more time (--budget)";
  switch (verdict.cause) {
    case Cause::kOwnLock: return "hold that lock for less time, or split what it guards";
    case Cause::kOwnSharing: return "find the lines that threads write in turns, and give each thread its own";
    case Cause::kOwnPageFaults: return "keep memory that will be needed again instead of unmapping it";
    case Cause::kMemoryBandwidth: return "touch less memory: smaller elements, pieces that fit the caches";
    case Cause::kCpuQuota:
      return diagnosis.experiment.is_bound() ? "let its threads use all CPUs: find who calls sched_setaffinity()"
                                             : "raise the quota, or start as many threads as it has CPUs";
    case Cause::kSerial: return "find what runs alone, and divide it or let it overlap";
    case Cause::kUndecided: return "run the doctor again on a quiet machine, with more repetitions (--repeat)";
    default: return "";
  }
}

std::string advice_of(const Diagnosis& diagnosis) {
  const Verdict& verdict = diagnosis.verdict;
  if (own_failure(diagnosis.experiment)) return "Do: make it run by itself first; then ask again.";
  if (!was_compared(verdict) && verdict.cause == Cause::kUndecided)
    return diagnosis.signal != 0 ? "Do: ask again, and let it finish." : "Do: give it more time (--budget).";
  const std::string_view own = way_out_of(diagnosis);
  const std::string use = verdict.best_fix ? use_of(diagnosis, verdict.fixes[*verdict.best_fix]) : "";
  if (own.empty() && use.empty()) return {};
  if (own.empty()) return fmt::format("Do: {}.{}", use, as_good_of(diagnosis));
  return use.empty() ? fmt::format("Do: {}.", own)
                     : fmt::format("Do: {}. Beside that, {}.{}", own, use, as_good_of(diagnosis));
}

}  // namespace

std::optional<double> recording_cost(const Diagnosis& diagnosis) {
  const auto sweep = diagnosis.experiment.sweep();
  if (sweep.empty() || !diagnosis.recorded_trial) return std::nullopt;
  const auto before = if_measured(cost, diagnosis.experiment.find(0, sweep.back()));
  return before ? std::optional(diagnosis.recorded_trial->cost() / *before - 1) : std::nullopt;
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

std::string program_name(const Diagnosis& diagnosis) {
  const std::string& path = diagnosis.settings.command.empty() ? diagnosis.program : diagnosis.settings.command.front();
  return path.substr(path.rfind('/') + 1);
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

bool is_work_unclear(const Diagnosis& diagnosis) noexcept {
  const Verdict& verdict = diagnosis.verdict;
  return diagnosis.experiment.work_is_guessed && !verdict.contradictions.empty() &&
         verdict.contradictions.front() == Contradiction::kNoLossButLost;
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

VerdictText verdict_text_of(const Diagnosis& diagnosis) {
  VerdictText text;
  text.headline = headline_of(diagnosis);
  if (!own_failure(diagnosis.experiment)) {
    text.because = evidence_of(diagnosis);
    text.bound = bound_of(diagnosis);
    text.tried = tried_of(diagnosis);
  }
  text.advice = advice_of(diagnosis);
  return text;
}

}  // namespace freehold::doctor::report
