// SPDX-License-Identifier: MIT
// The verdict in words: the headline, the most that any allocator could do, what to do and what that brings.
#include "tools/doctor/report/words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <tuple>

#include "tools/doctor/facts/attribution.hpp"
#include "tools/doctor/facts/derived.hpp"
#include "tools/doctor/report/format.hpp"
#include "tools/doctor/verdict/verdict_table.hpp"

namespace freehold::doctor::report {
namespace {

// ---- the headline

constexpr double kWorthAGain = 1.1;  // surely so many times as fast: to be said beside any verdict

// Names what the allocator does that costs scaling, as the end of a sentence.
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
  // No other malloc was put in the place of one that the program brings.
  const bool may_be_malloc = diagnosis.experiment.own_malloc_share.value_or(0) >= limit_of(Limit::kMostOwnMalloc);
  std::string text = may_be_malloc ? "The program waits on a lock, its own or that of the malloc that it brings"
                                   : "Not the allocator: the program waits on its own lock";
  if (recorded != nullptr && !recorded->lock_waits.empty())
    text += ", taken at " + short_text(recorded->lock_waits.front().place.frame());
  else if (diagnosis.spins_at)
    text += ", or for what other threads do, in a loop that spins: " + short_text(*diagnosis.spins_at);
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

// Says what another allocator does to the time of a program that does not lose scaling, or cannot; empty: nothing.
std::string gain_all_the_same(const Diagnosis& diagnosis) {
  const Verdict& verdict = diagnosis.verdict;
  if (!verdict.best_fix) return {};
  const Fix& fix = verdict.fixes[*verdict.best_fix];
  if (fix.gain.low < kWorthAGain) return {};
  return fmt::format("{} makes it {} as fast", text_of(diagnosis.experiment.variants[fix.variant]), times_text(fix.gain));
}

// Names what a program loses on several CPUs, beside what its allocator costs it on one as well.
std::string_view beside_loss(const Estimate& lost) {
  if (lost.low >= limit_of(Limit::kLoses)) return ", more than it loses on several CPUs";
  return lost.high < limit_of(Limit::kScales) ? ", not scaling" : ", whether or not it scales";
}

std::string one_thread(const Diagnosis& diagnosis) {
  const std::string gain = gain_all_the_same(diagnosis);
  const std::string_view why = "The program has one thread, so more CPUs cannot make it faster";
  if (diagnosis.verdict.cause == Cause::kPageFaults && !gain.empty())
    return fmt::format("{}; but its allocator costs it time: {} ({}).", why, gain, doing_of(Cause::kPageFaults));
  if (diagnosis.verdict.cause == Cause::kArenaBloat) return fmt::format("{}; but another allocator needs less memory.", why);
  return gain.empty() ? fmt::format("{}, whatever the allocator.", why) : fmt::format("{}; but {}.", why, gain);
}

// Names the evidence against the cause that is nearest.
std::string reason_of(const Diagnosis& diagnosis) {
  const Verdict& verdict = diagnosis.verdict;
  switch (*verdict.missing) {
    case Fact::kUnexplainedGain:
      return "the program scales, but another allocator makes it far faster, and nothing that was recorded says why";
    case Fact::kAlikeGains:
      return "padding, fewer arenas and other allocators help alike, so the program as it is may just have been slow in its "
             "runs";
    case Fact::kLost:
      if (is_work_unclear(diagnosis))
        return "with more threads the program needs more CPU time. Each thread may bring its own work, or threads may "
               "spin or write the same cache lines, and the trials cannot tell which";
      return "some trials lose scaling and others do not";
    default:
      return fmt::format("it looks like {}, but this speaks against it: {}", text_of(verdict.suspected),
                         describe(*verdict.missing).sentence);
  }
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
      if (verdict.missing && verdict.suspected != Cause::kUndecided)
        return fmt::format("Undecided: {}.", reason_of(diagnosis));
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
    case Cause::kOwnMalloc:
      return "Not the allocator that can be replaced: threads wait for each other in a malloc of the program's own, or of "
             "its "
             "runtime.";
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

constexpr double kNotWorthTrying = 0.03;  // gain at most, below which other allocators need not be tried

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
  if (verdict.best_fix || (!verdict.most_gain && diagnosis.recorded != nullptr)) return {};  // "brings" says what could be
  if (!verdict.most_gain)
    return fmt::format("How much any allocator could do is not known: {}.", why_without_bound(diagnosis));
  const double most = verdict.most_gain->high - 1;
  std::string text = fmt::format("No allocator can make it more than {} faster, {}", percent_text(std::max(most, 0.01)),
                                 source_of_bound(diagnosis));
  if (most <= kNotWorthTrying) text += ": there is no need to try others";
  return text + '.';
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

// "1.9 times (1.8 to 2.0) as fast with Freehold; jemalloc and tcmalloc cannot be told apart from it"
std::string gain_of(const Diagnosis& diagnosis) {
  const Verdict& verdict = diagnosis.verdict;
  if (!verdict.best_fix || verdict.cause == Cause::kUndecided) return {};
  const Fix& best = verdict.fixes[*verdict.best_fix];
  std::vector<std::string> alike;
  for (const Fix* other : best_first(verdict)) {
    if (other != &best && other->helps && other->gain.low <= best.gain.high && other->gain.high >= best.gain.low)
      alike.push_back(text_of(diagnosis.experiment.variants[other->variant]));
  }
  const std::string gain =
      best.gain.low > 1  // else it is memory that it helps with
          ? fmt::format("{} as fast with {}", times_text(best.gain), text_of(diagnosis.experiment.variants[best.variant]))
          : fmt::format("{} what its peak memory is with {}", times_text(best.memory),
                        text_of(diagnosis.experiment.variants[best.variant]));
  if (alike.empty()) return gain + '.';
  const std::string last = alike.back();
  alike.pop_back();
  return fmt::format("{}; {}{}{} cannot be told apart from it.", gain, fmt::join(alike, ", "), alike.empty() ? "" : " and ",
                     last);
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
    case Cause::kOwnMalloc: return "give each thread a part of that malloc, or let malloc do its work";
    case Cause::kMemoryBandwidth: return "touch less memory: smaller elements, pieces that fit the caches";
    case Cause::kCpuQuota:
      return diagnosis.experiment.is_bound() ? "let its threads use all CPUs: find who calls sched_setaffinity()"
                                             : "raise the quota, or start as many threads as it has CPUs";
    case Cause::kSerial: return "find what runs alone, and divide it or let it overlap";
    case Cause::kUndecided: return "run the doctor again on a quiet machine, with more repetitions (--repeat)";
    default: return "";
  }
}

std::string capitalized(std::string sentence) {
  sentence[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(sentence[0])));
  return sentence;
}

std::string advice_of(const Diagnosis& diagnosis) {
  const Verdict& verdict = diagnosis.verdict;
  if (own_failure(diagnosis.experiment)) return "Make it run by itself first; then ask again.";
  if (!was_compared(verdict) && verdict.cause == Cause::kUndecided)
    return diagnosis.signal != 0 ? "Ask again, and let it finish." : "Give it more time (--budget).";
  const std::string_view own = way_out_of(diagnosis);
  const std::string use = verdict.best_fix ? use_of(diagnosis, verdict.fixes[*verdict.best_fix]) : "";
  if (own.empty() && use.empty()) return {};
  return capitalized(own.empty()   ? use + '.'
                     : use.empty() ? fmt::format("{}.", own)
                                   : fmt::format("{}. Beside that, {}.", own, use));
}

}  // namespace

std::string program_name(const Diagnosis& diagnosis) {
  const std::string& path = diagnosis.settings.command.empty() ? diagnosis.program : diagnosis.settings.command.front();
  return path.substr(path.rfind('/') + 1);
}

bool is_work_unclear(const Diagnosis& diagnosis) noexcept {
  const Verdict& verdict = diagnosis.verdict;
  return diagnosis.experiment.work_is_guessed && verdict.missing == Fact::kLost;
}

Words words_of(const Diagnosis& diagnosis) {
  Words words;
  words.headline = headline_of(diagnosis);
  add_evidence(diagnosis, words);
  if (!own_failure(diagnosis.experiment)) {
    words.bound = bound_of(diagnosis);
    words.gain = gain_of(diagnosis);
  }
  words.advice = advice_of(diagnosis);
  add_steps(diagnosis, words);
  return words;
}

}  // namespace freehold::doctor::report
