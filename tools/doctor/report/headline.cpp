// SPDX-License-Identifier: MIT
// The verdict in one sentence.
#include <fmt/format.h>

#include <algorithm>

#include "tools/doctor/facts/attribution.hpp"
#include "tools/doctor/facts/derived.hpp"
#include "tools/doctor/facts/loss.hpp"
#include "tools/doctor/report/format.hpp"
#include "tools/doctor/report/verdict_text.hpp"

namespace freehold::doctor::report {
namespace {

constexpr double kWorthAGain = 1.1;  // surely so many times as fast: to be said beside any verdict

// What the allocator does that costs scaling, as the end of a sentence.
std::string_view doing_of(Cause cause) {
  switch (cause) {
    case Cause::kAllocatorLock: return "threads wait for each other inside malloc and free";
    case Cause::kRemoteFrees: return "threads free blocks that other threads allocated, which its malloc makes them pay for";
    case Cause::kAllocatorFalseSharing:
      return "it puts blocks of different threads on one cache line, which CPUs then fight for";
    case Cause::kPageFaults: return "it takes memory from the kernel and gives it back all the time";
    default: return "";
  }
}

// ---- the interpreter's lock

constexpr double kOneRuns = 1.1;    // CPUs that are busy while one thread runs at a time
constexpr double kManyWaits = 0.1;  // share of the threads' lives: a lock that is worth a sentence

bool is_python_with_threads(const Diagnosis& diagnosis) {
  return diagnosis.experiment.most_threads > 1 && std::ranges::any_of(diagnosis.own_allocators, [](const OwnAllocator& own) {
           return own.use_malloc == "PYTHONMALLOC=malloc";
         });
}
bool takes_interpreter_lock(const Frame& frame) {
  constexpr std::string_view kNames[] = {"take_gil", "PyEval_RestoreThread", "PyEval_AcquireThread", "PyGILState_Ensure"};
  return std::ranges::any_of(kNames, [&](std::string_view name) { return frame.function.find(name) != std::string::npos; });
}
bool takes_interpreter_lock(const WaitSite& site) {
  return std::ranges::any_of(site.place.stacks, [](const SiteStack& stack) {
    return std::ranges::any_of(stack.frames, [](const Frame& frame) { return takes_interpreter_lock(frame); });
  });
}
// Python's threads may all run: NumPy's do. Either they were seen to wait for the interpreter, or one of them ran at a time
// and they were not seen to wait for another lock. A stripped Python has no name for the function that waits.
bool waits_for_interpreter(const Diagnosis& diagnosis) {
  if (!is_python_with_threads(diagnosis)) return false;
  if (diagnosis.spins_at && takes_interpreter_lock(*diagnosis.spins_at)) return true;
  double for_interpreter = 0, for_others = 0;
  if (const Attribution* const recorded = diagnosis.recorded.get()) {
    for (const WaitSite& site : recorded->lock_waits)
      (takes_interpreter_lock(site) ? for_interpreter : for_others) += site.share;
    for (const WaitSite& site : recorded->idle_waits) for_interpreter += takes_interpreter_lock(site) ? site.share : 0;
  }
  if (for_interpreter >= kManyWaits) return for_interpreter >= for_others;
  const auto busy = if_measured(busy_cpus, diagnosis.experiment.find(0, diagnosis.verdict.all));
  return busy && *busy <= kOneRuns && for_others < kManyWaits;
}
constexpr std::string_view kInterpreterLock =
    "Not the allocator: Python's threads wait for the interpreter's lock (the GIL), so that one of them runs at a time. "
    "Processes, or a Python without that lock, would run side by side.";

std::string own_lock(const Diagnosis& diagnosis) {
  if (waits_for_interpreter(diagnosis)) return std::string(kInterpreterLock);
  const Attribution* const recorded = diagnosis.recorded.get();
  std::string text = "Not the allocator: the program waits on its own lock";
  if (recorded != nullptr && !recorded->lock_waits.empty())
    text += ", taken at " + short_text(recorded->lock_waits.front().place.frame());
  else if (diagnosis.spins_at)
    text += ", in a loop that spins: " + short_text(*diagnosis.spins_at);
  else if (diagnosis.experiment.code.lock_sleepers > 0)
    text += ", which the probe does not see: made by hand, or inside a library, such as the lock of a stdio stream";
  return text + '.';
}

std::string own_sharing(const Diagnosis& diagnosis) {
  return fmt::format("Not the allocator: the program's own threads write the same cache lines, or spin for each other{}.",
                     diagnosis.contended_at ? ", above all at " + short_text(*diagnosis.contended_at) : "");
}

std::string quota(const Experiment& experiment) {
  if (experiment.quota_cpus > 0)
    return fmt::format(
        "Not the allocator: the program is limited by its CPU quota: its control group allows it {:.3g} CPU{}.",
        experiment.quota_cpus, experiment.quota_cpus == 1 ? "" : "s");
  if (experiment.is_bound())
    return fmt::format(
        "Not the allocator: the program's threads are bound to {} of {} CPUs, by the program or a library that it loads.",
        experiment.own_cpus, experiment.affinity_cpus);
  return fmt::format("Not the allocator: the program is limited to {}, fewer than it has threads for.",
                     counted(experiment.affinity_cpus, "CPU"));
}

std::string mixed(const Verdict& verdict) {
  std::string others;
  for (const Part& part : verdict.parts) {
    if (blames_allocator(part.cause) || part.cause == Cause::kNone) continue;
    others += fmt::format("{}{} ({})", others.empty() ? "" : ", ", text_of(part.cause), percent_value_text(part.share));
  }
  return fmt::format("The allocator explains {} of the time that this program loses on several CPUs{}{}.",
                     percent_text(verdict.allocator_share), others.empty() ? "" : "; beside it, ", others);
}

// Of a program that does not lose scaling, or cannot: what another allocator does to its time all the same; empty: nothing.
std::string gain_all_the_same(const Diagnosis& diagnosis) {
  const Verdict& verdict = diagnosis.verdict;
  if (!verdict.best_fix) return {};
  const Fix& fix = verdict.fixes[*verdict.best_fix];
  if (fix.gain.low < kWorthAGain) return {};
  return fmt::format("{} makes it {} as fast", text_of(diagnosis.experiment.variants[fix.variant]), times_text(fix.gain));
}

// What a program loses on several CPUs, beside what its allocator costs it on one as well.
std::string_view beside_loss(const Estimate& lost) {
  if (lost.low >= kLosesFrom) return ", more than it loses on several CPUs";
  return lost.high < kScalesBelow ? ", not scaling" : ", whether or not it scales";
}

std::string one_thread(const Diagnosis& diagnosis) {
  const std::string gain = gain_all_the_same(diagnosis);
  const std::string_view why = "The program has one thread, so more CPUs cannot make it faster";
  if (diagnosis.verdict.cause == Cause::kPageFaults && !gain.empty())
    return fmt::format("{}; but its allocator costs it time: {} ({}).", why, gain, doing_of(Cause::kPageFaults));
  if (diagnosis.verdict.cause == Cause::kArenaBloat) return fmt::format("{}; but another allocator needs less memory.", why);
  return gain.empty() ? fmt::format("{}, whatever the allocator.", why) : fmt::format("{}; but {}.", why, gain);
}

std::string_view reason_of(Contradiction contradiction, const Diagnosis& diagnosis) {
  switch (contradiction) {
    case Contradiction::kBlamedButNothingHelps: return "the recording points to the allocator, but no other one is faster";
    case Contradiction::kInnocentButAnotherHeals:
      if (diagnosis.verdict.suspected == Cause::kNone)
        return "the program scales, but another allocator makes it far faster, and nothing that was recorded says why";
      return "with another allocator the program scales, but nothing that was recorded says why";
    case Contradiction::kNoLossButLost:
      if (is_work_unclear(diagnosis))
        return "with more threads the program needs more CPU time. Each thread may bring its own work, or threads may "
               "spin or write the same cache lines, and the trials cannot tell which";
      [[fallthrough]];
    case Contradiction::kLossWithoutLoss: return "some trials lose scaling and others do not";
    case Contradiction::kMemoryButTime:
      return "another allocator needs less memory, but that does not explain the time that is lost";
    case Contradiction::kOneThreadWaits: return "threads seem to wait for each other, but only one was ever seen";
    case Contradiction::kBusyButIdle: return "what keeps the CPUs from working does not agree with how busy they were";
    case Contradiction::kBandwidthButCopiesDoWell:
      return "it seems to be memory bandwidth, but processes that share nothing do not lose it";
    case Contradiction::kFaultsStay: return "it seems to be page faults, but they are as many with the allocator that helps";
    case Contradiction::kSharesDoNotAdd: return "the shares of what is lost do not add up";
    case Contradiction::kAllHelpAlike:
      return "padding, fewer arenas and other allocators help alike, so the program as it is may just have been slow in its "
             "runs";
    case Contradiction::kAdviceDoesNotHelp: return "what seems to help does not help surely";
  }
  __builtin_unreachable();
}

std::string undecided(const Diagnosis& diagnosis) {
  const Verdict& verdict = diagnosis.verdict;
  switch (verdict.doubt) {
    case Doubt::kBusyMachine:
      return fmt::format(
          "Undecided: other programs took {} of the CPUs during the measurement, which is too much for a verdict.",
          percent_text(verdict.disturbance));
    case Doubt::kNoProcesses:
      return "Undecided: there was no time to run the program as independent processes, which distinguish memory bandwidth "
             "from data that threads share.";
    case Doubt::kNoPadding:
      return "Undecided: threads write the same cache lines, and there was no time to try padded blocks, which distinguish "
             "malloc's blocks that share a line from data of the program's own.";
    case Doubt::kContradiction:
      if (!verdict.contradictions.empty())
        return fmt::format("Undecided: {}.", reason_of(verdict.contradictions.front(), diagnosis));
      break;
    default: break;
  }
  return "Undecided: the trials cannot distinguish the allocator's part from chance.";
}

std::string not_compared(const Diagnosis& diagnosis) {
  return fmt::format("No verdict: {} with different numbers of {}.",
                     diagnosis.signal != 0 ? "the doctor was interrupted before the program had run"
                                           : "there was no time to run the program",
                     diagnosis.verdict.all.threads != 0 ? "threads" : "CPUs");
}

}  // namespace

std::string headline_of(const Diagnosis& diagnosis) {
  const Verdict& verdict = diagnosis.verdict;
  if (const Cell* failed = own_failure(diagnosis.experiment))
    return fmt::format("No verdict: the program itself fails ({}).", failed->failure);
  if (!was_compared(verdict) && verdict.cause == Cause::kUndecided) return not_compared(diagnosis);
  if (verdict.one_thread && verdict.cause != Cause::kUndecided) return one_thread(diagnosis);
  switch (verdict.cause) {
    case Cause::kNone: {
      const std::string gain = gain_all_the_same(diagnosis);
      return gain.empty() ? "Not the allocator: the program does not lose scaling."
                          : fmt::format("Not the allocator: the program does not lose scaling. All the same {}.", gain);
    }
    case Cause::kAllocatorLock:
    case Cause::kRemoteFrees:
    case Cause::kAllocatorFalseSharing:
    case Cause::kPageFaults:
      if (!explains_loss(verdict))
        return fmt::format("The allocator costs this program time{}: {}. {}.", beside_loss(verdict.lost),
                           doing_of(verdict.cause), gain_all_the_same(diagnosis));
      return fmt::format("The allocator explains {} of the time that this program loses on several CPUs: {}.",
                         percent_text(verdict.allocator_share), doing_of(verdict.cause));
    case Cause::kArenaBloat: {
      const std::string gain = gain_all_the_same(diagnosis);
      return fmt::format("The allocator costs this program memory{}: it keeps free memory for each thread apart (arenas){}.",
                         gain.empty() ? ", not time" : ", and the time to fetch it", gain.empty() ? "" : "; " + gain);
    }
    case Cause::kOwnLock: return own_lock(diagnosis);
    case Cause::kOwnSharing: return own_sharing(diagnosis);
    case Cause::kOwnPageFaults:
      return "Not the allocator: the program takes memory from the kernel and gives it back itself.";
    case Cause::kMemoryBandwidth: return "Not the allocator: the program is limited by memory bandwidth.";
    case Cause::kCpuQuota: return quota(diagnosis.experiment);
    case Cause::kSerial:
      if (waits_for_interpreter(diagnosis)) return std::string(kInterpreterLock);
      if (diagnosis.experiment.code.team_waiting >= kManyWaits)
        return "Not the allocator: OpenMP's threads wait for work, because too little of the program runs at the same time.";
      return "Not the allocator: CPUs idle, because too little of the program runs at the same time.";
    case Cause::kMixed: return mixed(verdict);
    case Cause::kUndecided: return undecided(diagnosis);
  }
  __builtin_unreachable();
}

}  // namespace freehold::doctor::report
