#include "cli/doctor/words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "cli/doctor/figures.hpp"
#include "cli/doctor/measured.hpp"
#include "freehold/doctor/attribution.hpp"

namespace freehold::cli::doctor {
namespace {
using namespace freehold::doctor;

constexpr double kWorthAWord = 0.02;      // shares below this do not help to understand a verdict
constexpr double kNotWorthTrying = 0.03;  // faster at most: nobody needs to try other allocators
constexpr double kWorthAGain = 1.1;       // surely so many times as fast: to be said beside any verdict

// Of things that have been counted by place: "nearly all", "most", "a third".
std::string portion(double share) {
  if (share >= 0.9) return "nearly all";
  if (share >= 0.6) return "most";
  if (share >= 0.4) return "about half";
  return fmt::format("{} of them", percent_text(share));
}

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

std::string width_text(const Setting& setting) { return describe(setting); }

// "on 4 CPUs", "with 4 threads"
std::string at(const Setting& setting) {
  return fmt::format("{} {}", setting.threads != 0 && setting.copies == 1 ? "with" : "on", width_text(setting));
}

bool was_compared(const Verdict& verdict) { return !(verdict.alone == verdict.all); }

// ---- the headline

std::string own_lock(const Diagnosis& diagnosis) {
  const Attribution* const recorded = diagnosis.recorded.get();
  std::string text = "Not the allocator: the program waits on its own lock";
  if (recorded != nullptr && !recorded->lock_waits.empty())
    text += ", taken at " + short_text(recorded->lock_waits.front().place.frame());
  else if (diagnosis.spins_at)
    text += ", in a loop that spins: " + short_text(*diagnosis.spins_at);
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
  const unsigned allowed = experiment.own_cpus != 0 ? experiment.own_cpus : experiment.affinity_cpus;
  return fmt::format("Not the allocator: the program is limited to {}, fewer than it has threads for.",
                     counted(allowed, "CPU"));
}

std::string mixed(const Verdict& verdict) {
  std::string others;
  for (const Part& part : verdict.parts) {
    if (blames_allocator(part.cause) || part.cause == Cause::kNone) continue;
    others += fmt::format("{}{} ({})", others.empty() ? "" : ", ", text_of(part.cause), percent_value_text(part.share));
  }
  return fmt::format("The allocator explains {} of the scaling that this program loses{}{}.",
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
        return "with more threads the program needs more CPU time. Each thread may bring work of its own, or threads may "
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
          "Undecided: other programs took {} of the CPUs meanwhile, and what was measured does not stand against that.",
          percent_text(verdict.disturbance));
    case Doubt::kNoProcesses:
      return "Undecided: there was no time to run it as processes that share nothing, which tells memory bandwidth from "
             "data "
             "that threads share.";
    case Doubt::kContradiction:
      if (!verdict.contradictions.empty())
        return fmt::format("Undecided: {}.", reason_of(verdict.contradictions.front(), diagnosis));
      break;
    default: break;
  }
  return "Undecided: what was measured does not tell the allocator's part from chance.";
}

std::string headline_of(const Diagnosis& diagnosis) {
  const Verdict& verdict = diagnosis.verdict;
  if (const Cell* failed = own_failure(diagnosis.experiment))
    return fmt::format("No verdict: the program itself fails ({}).", failed->failure);
  if (!was_compared(verdict) && verdict.cause == Cause::kUndecided)
    return "No verdict: on one CPU there is no scaling to look at.";
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
      if (verdict.parts.empty())
        return fmt::format("The allocator costs this program time, not scaling: {}. {}.", doing_of(verdict.cause),
                           gain_all_the_same(diagnosis));
      return fmt::format("The allocator explains {} of the scaling that this program loses: {}.",
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
    case Cause::kSerial: return "Not the allocator: CPUs idle, because too little of the program runs at the same time.";
    case Cause::kMixed: return mixed(verdict);
    case Cause::kUndecided: return undecided(diagnosis);
  }
  __builtin_unreachable();
}

// ---- the figures behind it

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

void add_allocator_time(const Diagnosis& diagnosis, Sentences& out) {
  const Attribution& recorded = *diagnosis.recorded;
  std::string text = fmt::format("malloc and free take {} of its CPU time", percent_text(recorded.cpu_share));
  if (recorded.blocked_share > kWorthAWord)
    text += fmt::format(", and its threads are asleep in them for {} of their lives", percent_text(recorded.blocked_share));
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
      fmt::format("Its threads wait for locks of its own for {} of their lives", percent_text(recorded.lock_wait_share));
  if (!recorded.lock_waits.empty() && recorded.lock_wait_share > 0) {
    const WaitSite& first = recorded.lock_waits.front();
    text += fmt::format(", {} at {}", portion(std::min(first.share / recorded.lock_wait_share, 1.0)),
                        short_text(first.place.frame()));
  }
  out.push_back(text + '.');
}

void add_page_faults(const Diagnosis& diagnosis, Sentences& out) {
  const auto faults = page_faults_per_second(diagnosis.experiment.find(0, diagnosis.verdict.all));
  if (!faults) return;
  std::string text = fmt::format("The kernel hands it {} pages a second", count_text(*faults));
  if (const auto best = diagnosis.verdict.best_fix) {
    const std::size_t variant = diagnosis.verdict.fixes[*best].variant;
    if (const auto with = page_faults_per_second(diagnosis.experiment.find(variant, diagnosis.verdict.all)))
      text += fmt::format(", {} with {}", count_text(*with), text_of(diagnosis.experiment.variants[variant]));
  }
  out.push_back(text + '.');
}

void add_copies(const Diagnosis& diagnosis, Sentences& out) {
  const auto slowdown = copies_slowdown(diagnosis.experiment);
  if (!slowdown) return;
  out.push_back(fmt::format(
      "{} processes of it, each on a CPU of its own, share nothing and still need {:.1f} times the CPU time of one alone.",
      slowdown->copies, slowdown->ratio));
}

void add_busy_cpus(const Diagnosis& diagnosis, Sentences& out) {
  const Setting& all = diagnosis.verdict.all;
  const auto busy = busy_cpus(diagnosis.experiment.find(0, all));
  if (!busy) return;
  out.push_back(fmt::format("Of {} that it may use it keeps {:.1f} busy.", counted(all.cpus, "CPU"), *busy));
}

void add_quota(const Diagnosis& diagnosis, Sentences& out) {
  const Experiment& experiment = diagnosis.experiment;
  std::string text;
  if (experiment.most_threads > 1) text = fmt::format("It starts {}", counted(experiment.most_threads, "thread"));
  const auto throttled = throttled_share(experiment.find(0, diagnosis.verdict.all));
  if (throttled && *throttled > kWorthAWord)
    text += fmt::format("{} stands still for {} of its time because its quota is used up", text.empty() ? "It" : " and",
                        percent_text(*throttled));
  if (!text.empty()) out.push_back(text + '.');
}

void add_memory(const Diagnosis& diagnosis, Sentences& out) {
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
  if (cause == Cause::kCpuQuota) add_quota(diagnosis, out);
  if (cause == Cause::kArenaBloat) add_memory(diagnosis, out);
  if (recorded == nullptr) return;
  if (recorded->allocating.calls > 0) add_allocator_time(diagnosis, out);
  if (blames_allocator(cause)) {
    add_remote_frees(*recorded, out);
    add_false_sharing(*recorded, out);
  }
  if (cause == Cause::kOwnLock || cause == Cause::kMixed || cause == Cause::kSerial) add_own_waits(*recorded, out);
}

// ---- what any allocator could do

std::string bound_of(const Verdict& verdict) {
  if (!verdict.most_gain) return {};
  const double most = verdict.most_gain->high - 1;
  std::string text = fmt::format("No allocator can make it more than {} faster, found by making malloc and free slower",
                                 percent_text(std::max(most, 0.01)));
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
    case Treatment::kCappedArenas: return fmt::format("run it with {}", text_of(variant));
    case Treatment::kPadded: return "give the blocks that threads hold a cache line each (alignas(64))";
    case Treatment::kPeer: return fmt::format("run it with {}", variant.name);
  }
  __builtin_unreachable();
}

std::string_view way_out_of(const Diagnosis& diagnosis) {
  const Verdict& verdict = diagnosis.verdict;
  if (is_work_unclear(diagnosis))
    return "say whether threads share the work (--work fixed) or each brings its own (--work per-thread)";
  if (verdict.one_thread && verdict.cause == Cause::kSerial) return "divide its work among threads, if more CPUs shall help";
  if (verdict.doubt == Doubt::kNoProcesses) return "give it more time (--budget)";
  switch (verdict.cause) {
    case Cause::kOwnLock: return "hold that lock for less time, or split what it guards";
    case Cause::kOwnSharing: return "find the lines that threads write in turns, and give each thread its own";
    case Cause::kOwnPageFaults: return "keep memory that will be needed again instead of unmapping it";
    case Cause::kMemoryBandwidth: return "touch less memory: smaller elements, pieces that fit the caches";
    case Cause::kCpuQuota: return "raise the quota, or start as many threads as it has CPUs";
    case Cause::kSerial: return "find what runs alone, and divide it or let it overlap";
    case Cause::kUndecided: return "run the doctor again on a quiet machine, with more repetitions (--repeat)";
    default: return "";
  }
}

std::string advice_of(const Diagnosis& diagnosis) {
  const Verdict& verdict = diagnosis.verdict;
  if (own_failure(diagnosis.experiment)) return "Do: make it run by itself first; then ask again.";
  if (!was_compared(verdict) && verdict.cause == Cause::kUndecided)
    return "Do: ask again where it may use more than one CPU.";
  const std::string_view own = way_out_of(diagnosis);
  const std::string use = verdict.best_fix ? use_of(diagnosis, verdict.fixes[*verdict.best_fix]) : "";
  if (own.empty() && use.empty()) return {};
  if (own.empty()) return fmt::format("Do: {}.", use);
  return use.empty() ? fmt::format("Do: {}.", own) : fmt::format("Do: {}. Beside that, {}.", own, use);
}

// Whether others disturbed the trials, and the verdict was held against that.
bool verdict_stands(const Verdict& verdict) { return verdict.disturbance > kBusyFrom && verdict.cause != Cause::kUndecided; }

}  // namespace

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
    case Treatment::kPadded: return "padded blocks";
    case Treatment::kNone:
    case Treatment::kPeer: return variant.name;
    case Treatment::kCappedArenas: break;
  }
  const std::size_t comma = variant.name.find(", ");
  return comma == std::string::npos ? variant.name
                                    : variant.name.substr(0, comma) + " with " + variant.name.substr(comma + 2);
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

Words words_of(const Diagnosis& diagnosis) {
  Words words;
  words.headline = headline_of(diagnosis);
  if (!own_failure(diagnosis.experiment)) {
    add_scaling(diagnosis, words.because);
    add_evidence(diagnosis, words.because);
    if (diagnosis.verdict.noisy)
      words.because.emplace_back(
          verdict_stands(diagnosis.verdict)
              ? "Other processes used the CPUs meanwhile; what they took is taken off, and the limits allow for it."
              : "Other processes used the CPUs during the measurement; treat these figures with caution.");
    words.bound = bound_of(diagnosis.verdict);
    words.tried = tried_of(diagnosis);
  }
  words.advice = advice_of(diagnosis);
  return words;
}

}  // namespace freehold::cli::doctor
