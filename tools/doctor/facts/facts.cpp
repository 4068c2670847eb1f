// SPDX-License-Identifier: MIT
#include "tools/doctor/facts/facts.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tools/doctor/facts/attribution.hpp"
#include "tools/doctor/facts/bound.hpp"
#include "tools/doctor/facts/derived.hpp"
#include "tools/doctor/facts/scalability.hpp"

namespace freehold::doctor {
namespace {

using Costs = Resampled::Costs;

constexpr std::array<FactDescription, kFacts> kFactDescriptions{{
    {"threads", "threads", "the most threads that it had at once", ToldBy::kCounts, {}, false},
    {"cpus-allowed",
     "of its threads",
     "CPUs that it may use; without a limit if it may use all of this machine",
     ToldBy::kCounts,
     {},
     false},
    {"trials", "trials", "trials in the setting that has fewer of them", ToldBy::kTime},
    {"lost", "of the time", "what it takes on all CPUs beyond the ideal"},
    {"allocator-part", "of what is lost", "what goes with the best other allocator"},
    {"quota-part", "of what is lost", "the loss of a perfect program on the CPUs that it really had"},
    {"machine-part", "of what is lost", "what processes that share nothing lose as well"},
    {"own-part", "of what is lost", "the rest"},
    {"best-gain", "times as fast", "with the treatment that helps most"},
    {"unexplained-gain", "times as fast",
     "with the treatment that helps most, or 1 if the time seen in malloc explains that"},
    {"alike-gains", "times", "the greatest gain divided by the least, if every treatment helps; else without a limit"},
    {"padded-gain", "times as fast", "with padded blocks, or 1 if they do not surely help", ToldBy::kTime,
     Treatment::kPadded},
    {"padding-saves", "of what is lost", "what goes with padded blocks, or 0 if they do not surely help", ToldBy::kTime,
     Treatment::kPadded},
    {"padding-of-best", "of the allocator's part",
     "what padded blocks save, sure or not, divided by what the best treatment saves", ToldBy::kTime, Treatment::kPadded},
    {"freehold-saves", "of what is lost", "what goes with Freehold", ToldBy::kTime, Treatment::kFreehold},
    {"scaling-saved", "of what is lost", "what goes with the best allocator, without what it saves on one CPU as well"},
    {"remote-frees", "of the frees", "frees by another thread than the one that allocated", ToldBy::kRecording},
    {"in-malloc", "of the time", "CPU time and sleep in malloc and free", ToldBy::kRecording},
    {"asleep-in-malloc", "of the threads' lives", "sleep in malloc and free", ToldBy::kRecording},
    {"grows-away", "of the CPU time that the best allocator saves", "the share that is needed on all CPUs only",
     ToldBy::kCounts},
    {"grown-in-malloc", "of the CPU time", "what comes with the threads in malloc, if not far more of it does elsewhere",
     ToldBy::kSamples},
    {"own-malloc", "of the allocations", "those that go to a malloc that cannot be replaced", ToldBy::kCounts},
    {"fault-rate", "a second", "page faults", ToldBy::kCounts},
    {"kernel-share", "of the CPU time", "the kernel's", ToldBy::kCounts},
    {"kernel-share-alone", "of the CPU time", "the kernel's on one CPU, where threads do not wake each other",
     ToldBy::kCounts},
    {"faults-left", "of the faults", "those with the treatment that leaves fewest, of what helps", ToldBy::kCounts},
    {"fault-rate-left", "a second", "page faults with the best allocator", ToldBy::kCounts},
    {"kernel-share-left", "of the CPU time", "the kernel's with the best allocator", ToldBy::kCounts},
    {"kernel-in-malloc", "of the CPU time", "the kernel's work in calls of malloc, at least", ToldBy::kRecording},
    {"fault-gain", "times as fast", "with a treatment that leaves half of the faults or fewer"},
    {"fault-time-beyond-loss", "of the time", "what such a treatment saves, less the upper limit of `lost`"},
    {"mapped-by-program", "of the faulted bytes", "mapped by calls of the program's own", ToldBy::kRecording},
    {"memory-left", "of the memory", "with fewer arenas or with Freehold", ToldBy::kCounts, Treatment::kCappedArenas},
    {"memory-saved", "MiB", "with fewer arenas or with Freehold", ToldBy::kCounts, Treatment::kCappedArenas},
    {"memory-left-capped", "of the memory", "with fewer arenas", ToldBy::kCounts, Treatment::kCappedArenas},
    {"faults-left-capped", "of the faults", "with fewer arenas", ToldBy::kCounts, Treatment::kCappedArenas},
    {"lock-time", "of what is lost", "waits for the program's locks, with the kernel's work that comes with them",
     ToldBy::kRecording},
    {"locks-in-code", "of what is lost", "CPU time that comes with the threads where locks are taken", ToldBy::kSamples},
    {"locks-over-contended", "times", "`locks-in-code` divided by the time at other atomic operations", ToldBy::kSamples},
    {"grown-in-code", "of what is lost", "CPU time that comes with the threads at locks and shared lines", ToldBy::kSamples},
    {"idle", "of what is lost", "CPUs that no thread was ready for", ToldBy::kCounts},
    {"lock-sleeps", "of the idle CPUs", "sleep in locks", ToldBy::kCounts},
    {"repeated-work", "of what is lost", "work that each thread does again", ToldBy::kCounts},
    {"more-cpu-time", "of what is lost", "CPU time of the program's own code beyond that on one CPU", ToldBy::kCounts},
    {"cpu-time-growth", "times", "the CPU time on one CPU", ToldBy::kCounts},
    {"beyond-bandwidth", "times", "`cpu-time-growth` divided by the most that waiting for memory can cost",
     ToldBy::kSamples},
}};

// By how much others widen limits that time tells, where they took a sixth of the CPUs or more. It is less where they took
// less, and nothing where they took a 25th, which every machine does.
constexpr double kQuietBelow = 0.04, kBusyFully = 0.16;
constexpr double kWiderLoss = 0.08;      // of the time
constexpr double kWiderPart = 0.3;       // of what is lost
constexpr double kWiderGain = 1.125;     // times as fast
constexpr double kWiderSleep = 0.025;    // of the threads' lives
constexpr double kLeastOnCpu = 0.15;     // of the time that its threads were ready: less says nothing of the program
constexpr double kShortWait_s = 1.5e-3;  // less than a turn that the scheduler gives to others
constexpr double kFewSleeps = 0.1;       // of all, in locks: the others are elsewhere
constexpr double kSomeSleeps = 0.25;     // of all, in locks: the others may be, too
constexpr double kSleep_s = 20e-6;       // that a CPU idles at least when a thread goes to sleep and is woken

// A treatment that helps passes these.
constexpr double kGainFrom = 1.05;         // a fix that is worth it
constexpr double kSureGainFrom = 1.02;     // and surely more than this
constexpr double kError = 0.01;            // of the draws, for all looks: several fixes are tried, one of them is lucky
constexpr double kIdleMalloc = 0.01;       // of the time in malloc: no other one can help by being faster
constexpr double kNotWorthAnother = 0.02;  // the same: another one saves less than is advised
constexpr double kSharedLines = 0.05;      // of the lines that were watched: where blocks lie may matter
constexpr double kFewerFaults = 0.5;       // that are left with a treatment that mends them
constexpr double kFaultsPerSecond = 5000, kKernelAlone = 0.1;
constexpr double kPageBytes = 4096, kMemoryUnit = 1 << 20;
constexpr double kFetchedOnce = 1.5;  // of the peak memory
constexpr double kLittleBytes = 32 << 20;
constexpr double kBeyondBandwidth = 1.5;  // times what each CPU waits if one alone keeps the memory busy
constexpr double kSurelyWork = 0.25;      // of the CPU time that comes with threads, by which one CPU may differ
constexpr double kOneBusy = 1.05;         // CPUs that one thread can keep busy
constexpr double kNoisyControl = 1.15, kNoisySpread = 0.12;

double fetched(const Cell& on_all) { return page_faults(on_all) * kPageBytes / std::max(1.0, peak_bytes(on_all)); }
// The upper limit of the threads' time in malloc: CPU time and sleep.
double most_time_in_malloc(const Attribution& recorded) {
  return recorded.cpu_share + recorded.blocked_share +
         kNineOfTen * (recorded.cpu_share_error + recorded.blocked_share_error);
}

// Computes what each treatment does to the program on all of its CPUs.
class Treatments {
 public:
  explicit Treatments(const Losses& losses) : of_(losses), experiment_(losses.experiment) {}

  [[nodiscard]] Gains gains() {
    judge_fixes();
    hold_to_bound();
    choose_fix();
    judge_noise();
    fit_laws();
    return std::move(gains_);
  }

 private:
  void judge_fixes() {
    for (std::size_t v = 1; v < experiment_.variants.size(); ++v) {
      Fix fix;
      fix.variant = v;
      const Cell* const with = of_.cell(v, of_.all->setting);
      fix.failed =
          std::ranges::any_of(experiment_.cells, [v](const Cell& of) { return of.variant == v && !of.failure.empty(); });
      if (with == nullptr && !fix.failed) continue;
      if (with != nullptr) {
        fix.gain = of_.costs.estimate([&](const Costs& costs) { return costs(*of_.all) / costs(*with); });
        const double ratio = peak_bytes(*with) / std::max(1.0, peak_bytes(*of_.all));
        fix.memory = {ratio, ratio, ratio};
        fix.helps = !fix.failed && fix.gain.value >= kGainFrom && of_.costs.confidence([&](const Costs& costs) {
          return costs(*of_.all) / costs(*with) >= kSureGainFrom;
        }) >= 1 - kError / experiment_.looks;
      }
      gains_.fixes.push_back(fix);
    }
  }

  [[nodiscard]] Treatment treatment_of(const Fix& fix) const { return experiment_.variants[fix.variant].treatment; }

  // True if the program was seen to spend next to nothing in malloc, with the variant's as with its own: neither CPU time
  // nor waits nor page faults. A runtime's switch gives malloc calls that were not recorded.
  [[nodiscard]] bool malloc_is_idle(std::size_t variant) const {
    const Variant& tried = experiment_.variants[variant];
    if (of_.recorded == nullptr || (tried.treatment == Treatment::kPeer && !tried.environment.empty())) return false;
    const Cell* const with = of_.cell(variant, of_.all->setting);
    const bool same_faults = with == nullptr || page_faults(*with) > kAsManyFaults * page_faults(*of_.all);
    return most_time_in_malloc(*of_.recorded) < kIdleMalloc && (same_faults || system_share(*of_.all) < kKernelAlone);
  }
  // True if it may matter where blocks lie: threads were seen to share a part of the lines, or padding helps.
  [[nodiscard]] bool placement_matters() const {
    if (of_.recorded == nullptr) return true;
    const auto shared = static_cast<double>(of_.recorded->lines_shared);
    return (shared > 0 && shared >= kSharedLines * static_cast<double>(of_.recorded->lines_watched)) ||
           std::ranges::any_of(gains_.fixes,
                               [&](const Fix& fix) { return treatment_of(fix) == Treatment::kPadded && fix.helps; });
  }

  // If malloc is idle, no other one helps, unless blocks lie elsewhere: a gain then shows a program that was slow in its own
  // trials. A treatment that surely does more than the bound does it by where it puts blocks, which an allocator could do,
  // too.
  void hold_to_bound() {
    gains_.most_gain = bound_of(experiment_, *of_.all, of_.recorded, of_.costs.usual_spread());
    if (!gains_.most_gain) return;
    double& most = gains_.most_gain->high;
    const double inside_malloc = most;
    for (Fix& fix : gains_.fixes) {
      if (treatment_of(fix) != Treatment::kPadded && malloc_is_idle(fix.variant) && !placement_matters()) fix.helps = false;
      if (fix.helps && fix.gain.low > inside_malloc) most = std::max(most, fix.gain.high);
    }
    for (Fix& fix : gains_.fixes) {
      if (fix.gain.value <= 0) continue;
      const bool disagree = fix.gain.low > most;  // the trials and the bound: then no difference is not excluded
      fix.gain = {disagree ? 1 : fix.gain.low, std::min(fix.gain.value, most), std::min(fix.gain.high, most)};
      fix.helps = fix.helps && fix.gain.value >= kGainFrom;
    }
  }

  // A fix that these trials cannot tell from the best is as good, and Freehold is here already.
  void choose_fix() {
    for (std::size_t i = 0; i < gains_.fixes.size(); ++i) {
      const Fix& fix = gains_.fixes[i];
      if (fix.helps && (!gains_.best_fix || fix.gain.value > gains_.fixes[*gains_.best_fix].gain.value)) gains_.best_fix = i;
    }
    for (std::size_t i = 0; i < gains_.fixes.size(); ++i) {
      const Fix& fix = gains_.fixes[i];
      if (treatment_of(fix) == Treatment::kFreehold && fix.helps && fix.gain.high >= gains_.fixes[*gains_.best_fix].gain.low)
        gains_.best_fix = i;
    }
  }

  void judge_noise() {
    const auto taken = [](const Cell* of) {
      return of == nullptr ? 0 : median_of(*of, [of](const Trial& trial) { return taken_share(trial, of->setting); });
    };
    gains_.disturbance = std::max(taken(of_.all), taken(of_.alone));
    for (const Fix& fix : gains_.fixes) {
      // That these do not help acquits the allocator.
      const bool may_acquit = treatment_of(fix) == Treatment::kPadded || treatment_of(fix) == Treatment::kFreehold;
      if (fix.helps || may_acquit)
        gains_.disturbance = std::max(gains_.disturbance, taken(of_.cell(fix.variant, of_.all->setting)));
    }
    gains_.noisy = experiment_.control.compute > kNoisyControl || of_.costs.usual_spread() > kNoisySpread ||
                   gains_.disturbance > kBusyFrom;
  }

  void fit_laws() {
    for (std::size_t v = 0; v < experiment_.variants.size(); ++v) {
      const Cell* const one = of_.alone == nullptr ? nullptr : of_.cell(v, of_.alone->setting);
      if (one == nullptr || one->setting.width() != 1) continue;
      std::vector<Speed> speeds;
      for (const Setting& setting : experiment_.sweep()) {
        const Cell* const at = of_.cell(v, setting);
        if (at == nullptr || setting.threads > setting.cpus) continue;  // the law knows nothing of threads that take turns
        speeds.push_back({double(setting.width()), growth_of_work(experiment_, *at) * cost(*one) / cost(*at)});
      }
      if (speeds.size() < 2) continue;
      gains_.scalability.push_back(fit(speeds));
      gains_.scalability.back().variant = v;
    }
  }

  const Losses& of_;
  const Experiment& experiment_;
  Gains gains_;
};

class Room {
 public:
  Room(const Losses& losses, const Gains& gains)
      : of_(losses),
        experiment_(losses.experiment),
        gains_(gains),
        code_(losses.experiment.code),
        all_(*losses.all),
        best_(losses.cell(losses.best_allocator, losses.all->setting)),
        others_(std::clamp((gains.disturbance - kQuietBelow) / (kBusyFully - kQuietBelow), 0.0, 1.0)),
        width_(losses.all->setting.width()),
        wall_s_(median_of(all_, &Trial::wall_s)),
        spun_(spun_share(experiment_, all_)) {}

  [[nodiscard]] Facts facts() {
    note_program();
    note_gains();
    note_memory();
    note_faults();
    note_recording();
    if (of_.alone == nullptr) return facts_;
    note_loss();
    note_treatments();
    note_allocators_part();
    note_own_part();
    return facts_;
  }

 private:
  void set(Fact fact, const auto& value) { facts_.set(fact, value); }
  [[nodiscard]] const Cell* with(Treatment treatment) const {
    const Variant* const found = experiment_.find(treatment);
    return found == nullptr ? nullptr : of_.cell(variant_of(*found), all_.setting);
  }
  [[nodiscard]] std::size_t variant_of(const Variant& variant) const {
    return static_cast<std::size_t>(&variant - experiment_.variants.data());
  }
  [[nodiscard]] double capacity_s() const { return wall_s_ * width_; }
  // Limits of what time tells, as far as others may have made it up.
  [[nodiscard]] Estimate wider_part(Estimate part) const {
    return {part.low - others_ * kWiderPart, part.value, part.high + others_ * kWiderPart};
  }
  [[nodiscard]] Estimate wider_gain(Estimate gain) const {
    const double wider = 1 + others_ * (kWiderGain - 1);
    return {gain.low / wider, gain.value, gain.high * wider};
  }
  // Between what holds on a quiet machine and what holds beside others.
  [[nodiscard]] double beside_others(double quiet, double busy) const { return quiet + others_ * (busy - quiet); }

  void note_program() {
    // That there was one thread is a count; a thread that was not seen shows in CPU time.
    const double seen =
        std::max<double>(experiment_.most_threads, of_.recorded == nullptr ? 0 : double(of_.recorded->threads));
    const bool is_one = seen == 1 && all_.setting.cpus > 1 && busy_cpus(all_) <= kOneBusy;
    set(Fact::kThreads, is_one ? 1.0 : std::max(seen, 2.0));
    if (experiment_.machine_cpus >= experiment_.online_cpus)
      set(Fact::kCpusAllowed, INFINITY);
    else if (experiment_.most_threads > 0)
      set(Fact::kCpusAllowed, experiment_.machine_cpus / double(experiment_.most_threads));
    const std::size_t alone = of_.alone == nullptr ? all_.trials.size() : of_.alone->trials.size();
    set(Fact::kTrials, double(std::min(alone, all_.trials.size())));
    set(Fact::kOwnMalloc, experiment_.variants.size() == 1 ? std::optional(1.0) : experiment_.own_malloc_share);
  }

  void note_gains() {
    // Each treatment asks another question; an answer that is the same to all is none.
    bool padded = false, arenas = false, another = false, do_all_help = true;
    double least = INFINITY, most = 0, unexplained = 1;
    const double of_malloc = code_.known ? 1 / (1 - std::min(code_.in_malloc, 0.98)) : 1;
    for (const Fix& fix : gains_.fixes) {
      const Treatment treatment = experiment_.variants[fix.variant].treatment;
      if (treatment == Treatment::kPadded && fix.gain.value > 0)
        set(Fact::kPaddedGain, fix.helps ? wider_gain(fix.gain) : Estimate{1, 1, 1});
      if (fix.failed || fix.gain.value <= 0) continue;
      if (fix.helps && fix.gain.low >= of_malloc) unexplained = std::max(unexplained, fix.gain.low);
      do_all_help &= fix.helps;
      padded |= treatment == Treatment::kPadded;
      arenas |= treatment == Treatment::kCappedArenas;
      another |= treatment == Treatment::kFreehold || treatment == Treatment::kPeer;
      least = std::min(least, fix.gain.value);
      most = std::max(most, fix.gain.value);
    }
    set(Fact::kUnexplainedGain, unexplained);
    if (experiment_.find(Treatment::kPadded) == nullptr) set(Fact::kPaddedGain, 1.0);  // it was not wanted
    if (gains_.best_fix) set(Fact::kBestGain, wider_gain(gains_.fixes[*gains_.best_fix].gain));
    set(Fact::kAlikeGains, do_all_help && padded && arenas && another && more_threads() ? most / least : INFINITY);
  }
  [[nodiscard]] bool more_threads() const { return facts_[Fact::kThreads]->value > 1; }

  void note_memory() {
    double left = INFINITY;
    for (const Fix& fix : gains_.fixes) {
      const Treatment treatment = experiment_.variants[fix.variant].treatment;
      const bool fewer_arenas = treatment == Treatment::kCappedArenas || treatment == Treatment::kFreehold;
      if (fewer_arenas && !fix.failed && fix.memory.value > 0) left = std::min(left, fix.memory.value);
    }
    if (std::isfinite(left)) {
      set(Fact::kMemoryLeft, left);
      set(Fact::kMemorySaved, peak_bytes(all_) * (1 - left) / kMemoryUnit);
    }
    if (const Cell* const capped = with(Treatment::kCappedArenas)) {
      set(Fact::kMemoryLeftCapped, peak_bytes(*capped) / std::max(1.0, peak_bytes(all_)));
      set(Fact::kFaultsLeftCapped, page_faults(*capped) / std::max(1.0, page_faults(all_)));
    }
  }

  void note_faults() {
    const Cell& rest = best_ != nullptr ? *best_ : all_;
    set(Fact::kFaultRate, page_faults_per_second(all_));
    set(Fact::kKernelShare, system_share(all_));
    set(Fact::kFaultRateLeft, page_faults_per_second(rest));
    set(Fact::kKernelShareLeft, system_share(rest));
    if (of_.alone != nullptr) set(Fact::kKernelShareAlone, system_share(*of_.alone));
    double left = 1, gain = 1;
    for (const Fix& fix : gains_.fixes) {
      const Cell* const cell = of_.cell(fix.variant, all_.setting);
      if (!fix.helps || cell == nullptr) continue;
      const double faults = page_faults(*cell) / std::max(1.0, page_faults(all_));
      left = std::min(left, faults);
      if (faults <= kFewerFaults) gain = std::max(gain, fix.gain.low);
    }
    set(Fact::kFaultsLeft, left);
    set(Fact::kFaultGain, gain);
    set(Fact::kFaultTimeBeyondLoss, 1 - 1 / gain);
  }

  void note_recording() {
    if (code_.known) {
      const bool is_outside = grows_outside_malloc(code_);
      set(Fact::kGrownInMalloc, is_outside ? 0 : code_.allocator);
    }
    if (of_.recorded == nullptr) return;
    const Attribution& recorded = *of_.recorded;
    set(Fact::kRemoteFrees, recorded.remote_share);
    set(Fact::kInMalloc, recorded.cpu_share + recorded.blocked_share);
    set(Fact::kAsleepInMalloc,
        Estimate{recorded.blocked_share - others_ * kWiderSleep, recorded.blocked_share, recorded.blocked_share});
    set(Fact::kMappedByProgram, recorded.mapped_bytes / std::max(1.0, kPageBytes * page_faults(all_)));
  }

  // The share of the time in which a thread was ready to run on all CPUs that it ran.
  [[nodiscard]] double on_cpu() const {
    return median_of(all_, [](const Trial& trial) {
      const double wanted = trial.cpu_s() + trial.taken_s;
      return wanted > 0 ? trial.cpu_s() / wanted : 1;
    });
  }
  [[nodiscard]] bool malloc_takes_no_time() const {
    return facts_[Fact::kInMalloc] && facts_[Fact::kInMalloc]->high <= 0.05;
  }
  // The share of what its threads would meet with all CPUs that they met: by the CPUs that they had, and were seen on.
  [[nodiscard]] double met() const {
    const double by_count = width_ > 1 ? (on_cpu() * width_ - 1) / (width_ - 1) : 1;
    double apart = 0, seen = 0;
    for (const Trial& trial : all_.trials)
      if (trial.apart_share) apart += *trial.apart_share, ++seen;
    return std::max(by_count, seen > 0 ? on_cpu() * apart / seen : 0);
  }
  // Threads that seldom run at the same time seldom get into each other's way. What they lose then grows with the time that
  // they do: CPU time beyond the work, and idleness, as if they had had all CPUs.
  [[nodiscard]] double hidden_loss() const {
    const double more =
        of_.costs
            .estimate([&](const Costs& costs) {
              return costs.cpu_seconds(all_) / (of_.growth_of_work(costs) * costs.cpu_seconds(*of_.alone)) - 1;
            })
            .high;
    const double beyond = std::max(0.0, more) + idle_share(all_);
    return met() > 0 ? beyond / (met() + beyond) : 1;
  }
  // The loss that counts tell, whoever else had the CPUs: CPUs that no thread was ready for, in the trial in which that was
  // least, and CPU time beyond that on one CPU and of copies. Others hide it from the clock: two threads that wait for each
  // other get twice as much of a busy machine as one.
  [[nodiscard]] double counted_loss() const {
    double idle = 1;
    for (const Trial& trial : all_.trials)
      idle = std::min(idle, trial.run_delay_s ? 1 - (trial.cpu_s() + *trial.run_delay_s) / (trial.wall_s * width_) : 0);
    const auto [copies, single] = copies_of(experiment_);
    if (copies == nullptr || single == nullptr) return std::max(0.0, idle);
    const double bandwidth = std::max(1.0, cpu_seconds(*copies) / std::max(1e-9, cpu_seconds(*single)));
    const double growth = of_.costs
                              .estimate([&](const Costs& costs) {
                                return costs.cpu_seconds(all_) / (of_.growth_of_work(costs) * costs.cpu_seconds(*of_.alone));
                              })
                              .low;
    return 1 - (1 - std::max(0.0, idle)) / std::max(1.0, growth / bandwidth);
  }
  void note_loss() {
    Estimate lost = of_.lost();
    const double counted = others_ > 0 ? counted_loss() : 0;
    const bool is_hidden = counted > lost.value;
    lost = {std::max(lost.low - others_ * kWiderLoss, counted), std::max(lost.value, counted), std::max(lost.high, counted)};
    if (experiment_.work_is_guessed && experiment_.work_grows) {  // nothing tells work from waiting: it is one or the other
      Experiment otherwise = experiment_;
      otherwise.work_grows = false;
      lost.high = std::max(lost.high, Losses(otherwise, of_.recorded).lost().high);
    }
    if (others_ > 0) {
      const bool has_quota = experiment_.quota_cpus > 0 && experiment_.quota_cpus < width_;  // others leave them less
      lost.high = std::max(lost.high, has_quota ? 1 : beside_others(lost.high, hidden_loss()));
      if (on_cpu() < kLeastOnCpu) lost = {counted, lost.value, 1};
    }
    set(Fact::kLost, lost);
    lost_ = std::max(lost.value, 1e-6);
    if (more_threads()) set(Fact::kFaultTimeBeyondLoss, facts_[Fact::kFaultTimeBeyondLoss]->value - lost.high);
    set(Fact::kAllocatorPart, wider_part(of_.share(&Split::allocator)));
    set(Fact::kQuotaPart, wider_part(of_.share(&Split::quota)));
    const auto [copies, single] = copies_of(experiment_);
    if (copies != nullptr && single != nullptr) set(Fact::kMachinePart, wider_part(of_.share(&Split::machine)));
    set(Fact::kOwnPart, wider_part(of_.costs.estimate([&](const Costs& costs) {
          const Split split = of_.split(costs);
          return split.lost > 0 ? split.own() / split.lost : is_hidden ? 1 : 0;
        })));
  }
  // That a treatment helps is told by gains_of(). That it may help all the same is open where others may have held it up.
  // What is saved of the loss, where the treatment was tried on all CPUs at least: the program's own time alone may stand
  // in.
  [[nodiscard]] std::optional<Estimate> saved_by(Treatment treatment) const {
    const Cell* const cell = with(treatment);
    if (cell == nullptr) return std::nullopt;
    const Estimate saved = of_.costs.estimate([&](const Costs& costs) {
      const double lost = of_.lost_with(costs, 0);
      const double left =
          of_.has_pair(cell->variant) ? of_.lost_with(costs, cell->variant) : costs(*cell) - costs(all_) + lost;
      return lost > 0 ? (lost - left) / lost : 1;
    });
    const bool helps =
        std::ranges::any_of(gains_.fixes, [cell](const Fix& fix) { return fix.variant == cell->variant && fix.helps; });
    const double told = helps ? saved.value : std::min(saved.value, 0.0);
    return wider_part({beside_others(told, saved.low), told, beside_others(told, saved.high)});
  }
  void note_treatments() {
    if (const auto saved = saved_by(Treatment::kPadded)) set(Fact::kPaddingSaves, *saved);
    if (const auto saved = saved_by(Treatment::kFreehold)) set(Fact::kFreeholdSaves, *saved);
  }

  // CPU seconds that the program needs on all CPUs beyond those that it needs alone. Pre: the variant has both.
  [[nodiscard]] double more_work(std::size_t variant) const {
    return cpu_seconds(*of_.cell(variant, all_.setting)) -
           of_.growth_of_work(of_.costs.measured()) * cpu_seconds(*of_.cell(variant, of_.alone->setting));
  }
  void note_allocators_part() {
    if (best_ == nullptr || of_.best_allocator == 0) return;
    const Costs costs = of_.costs.measured();
    const double saved_s = std::max(1e-9, (costs(all_) - costs(*best_)) / costs(all_) * capacity_s());
    set(Fact::kGrowsAway, (more_work(0) - more_work(of_.best_allocator)) / saved_s);
    const double lost = of_.lost_with(costs, 0), left = of_.lost_with(costs, of_.best_allocator);
    const double alone = costs(*of_.alone) / costs(*of_.cell(of_.best_allocator, of_.alone->setting));
    if (lost > 0) set(Fact::kScalingSaved, (lost - left * alone) / lost);
    note_padding_of_best();
    if (of_.recorded != nullptr) {
      const auto both = [&](const Cell& cell) { return of_.recorded->cpu_share + system_share(cell) - 1; };
      set(Fact::kKernelInMalloc, std::min(both(all_), both(*of_.alone)));
    }
  }
  void note_padding_of_best() {
    const Variant* const padded = experiment_.find(Treatment::kPadded);
    if (padded == nullptr) return;
    const std::size_t variant = variant_of(*padded);
    if (variant == of_.best_allocator) return set(Fact::kPaddingOfBest, 1.0);
    if (!of_.has_pair(variant)) return;
    const auto saved = [&](std::size_t with) {
      return of_.costs.estimate([&](const Costs& costs) { return of_.lost_with(costs, 0) - of_.lost_with(costs, with); });
    };
    const double best = std::max(1e-9, saved(of_.best_allocator).value);
    const Estimate by_padding = saved(variant);
    set(Fact::kPaddingOfBest, Estimate{by_padding.low / best, by_padding.value / best, by_padding.high / best});
  }

  // True if the CPU time that comes with the threads is work: they need it on one CPU, too, where no line is fetched from
  // another. Threads that spin for each other there need much more than on all, where the one that they wait for runs.
  [[nodiscard]] bool does_more_work() const {
    double most_alone = 0;
    for (const Trial& trial : of_.alone->trials) most_alone = std::max(most_alone, trial.cpu_s());
    const double more = cpu_seconds(all_) - most_alone;
    return more > 0 && !experiment_.crowded.empty() && std::ranges::all_of(experiment_.crowded, [&](const Trial& trial) {
             return std::abs(trial.cpu_s() - cpu_seconds(all_)) <= kSurelyWork * more;
           });
  }

  void note_own_part() {
    const double repeated = does_more_work() ? std::max(0.0, more_work(0) / capacity_s()) : 0;
    set(Fact::kRepeatedWork, repeated / lost_);
    note_idleness(repeated);
    note_locks();
    note_code();
    note_cpu_time();
  }

  [[nodiscard]] double idle_in(const Trial& trial, double taken_counts) const {
    const double used = trial.cpu_s() + taken_counts * trial.taken_s;
    return std::max(0.0, 1 - used / (trial.wall_s * width_));
  }
  // A thread that others held up ends later, and its fellows' CPUs idle until then, by another time in each trial: beside
  // others it is sure that CPUs idled as in the trial in which they did least. What others had may have been idle as well.
  void note_idleness(double repeated) {
    const Cell& rest = best_ != nullptr ? *best_ : all_;
    const auto idle = [&](double taken_counts) {
      return spun_ + median_of(rest, [&](const Trial& trial) { return idle_in(trial, taken_counts); });
    };
    double least = 1;
    for (const Trial& trial : all_.trials) least = std::min(least, idle_in(trial, 1) + spun_);
    idle_ = idle(1);
    const double of = std::max(lost_ - repeated, repeated);
    set(Fact::kIdle, Estimate{std::min(idle_, beside_others(idle_, least)) / of, idle_ / of, idle(0) / of});
    // Each sleep that is too short to be seen costs the CPUs a while.
    const double sleeps = median_of(all_, [](const Trial& trial) { return double(trial.voluntary_switches); });
    const double idle_now = std::max(idle_, 1e-6), asleep = sleeps * kSleep_s / capacity_s();
    const double recorded = of_.recorded == nullptr ? 0 : of_.recorded->lock_wait_share;
    const double blocked = of_.recorded == nullptr ? 0 : of_.recorded->blocked_share;
    const double seen = std::max({recorded, code_.lock_sleepers / width_, code_.lock_sleeps * asleep}) / idle_now;
    double most = code_.lock_sleeps >= kSomeSleeps ? std::max(seen, asleep / idle_now) : seen;
    if (others_ > 0) {
      const bool few = code_.known && code_.lock_sleeps < kFewSleeps;
      const double all_short = few ? 0 : kShortWait_s * sleeps / capacity_s();
      most = std::max(most, (2 * (recorded + blocked) + all_short / 2) / std::max(least, 1e-6));
    }
    const double surely = std::max(
        {beside_others(recorded, recorded * short_waits()), code_.lock_sleepers / width_, code_.lock_sleeps * asleep});
    set(Fact::kLockSleeps, Estimate{surely / idle_now, seen, most});
  }

  // One that holds a lock and has no CPU lets the others wait for milliseconds, or spin: of a lock that matters by itself
  // the waits are short. Their share of the waits' time; many short ones elsewhere say nothing of it.
  [[nodiscard]] double short_waits() const {
    if (of_.recorded == nullptr) return 0;
    double seconds = 0, where_short = 0;
    for (const WaitSite& site : of_.recorded->lock_waits) {
      seconds += site.seconds;
      if (site.seconds <= kShortWait_s * site.count) where_short += site.seconds;
    }
    return seconds > 0 ? where_short / seconds : 0;
  }
  void note_locks() {
    if (of_.recorded == nullptr) return;
    const double waits = of_.recorded->lock_wait_share;
    const double more = median_of(all_, &Trial::system_s) -
                        of_.growth_of_work(of_.costs.measured()) * median_of(*of_.alone, &Trial::system_s);
    const bool are_faults = facts_[Fact::kFaultRate]->value >= kFaultsPerSecond &&
                            facts_[Fact::kKernelShare]->value >= 0.25 &&
                            facts_[Fact::kKernelShareAlone]->value >= kKernelAlone;
    const double time = waits >= 0.1 && !are_faults ? waits + std::max(0.0, more) / capacity_s() : waits;
    const double share = time / std::min(lost_, 0.5);
    set(Fact::kLockTime, Estimate{beside_others(share, share * short_waits()), share, share});
  }

  void note_code() {
    if (!code_.known) return;
    const double busy = std::clamp(cpu_seconds(all_) / capacity_s(), 0.01, 1.0);
    const bool is_mallocs = !malloc_takes_no_time();
    const double locking = code_.spinning + code_.locking + (is_mallocs ? 0 : code_.private_locking);
    const double sharing = code_.contended + (was_copied() && !does_more_work() ? code_.slowed : 0);
    // While others had a CPU that a thread was ready for, all its fellows may have waited for it, or spun; no longer.
    const double made_up = median_of(all_, [](const Trial& trial) { return trial.taken_s / trial.wall_s; });
    const double own = std::clamp((of_.lost().low - made_up) / lost_, 0.0, 1.0);
    const double locks = locking / lost_;
    set(Fact::kLocksInCode, Estimate{beside_others(locks, locks * own), locks, locks});
    set(Fact::kLocksOverContended, locking / std::max(1e-9, code_.contended));
    set(Fact::kGrownInCode, (locking + sharing) * busy / std::max(lost_, 2 * idle_));
  }
  [[nodiscard]] bool was_copied() const {
    return std::ranges::any_of(
        experiment_.cells, [](const Cell& of) { return of.variant == 0 && of.setting.copies > 1 && !of.trials.empty(); });
  }

  void note_cpu_time() {
    const double factor = of_.growth_of_work(of_.costs.measured()), alone = factor * cpu_seconds(*of_.alone);
    // The kernel's own time tells nothing of lines that threads share: they may wait for each other inside the kernel.
    const double more =
        (median_of(all_, &Trial::user_s) - factor * median_of(*of_.alone, &Trial::user_s)) / capacity_s() / lost_;
    // Threads may have brought it along, each its own.
    const bool is_work =
        experiment_.work_is_guessed && cpu_seconds(all_) <= width_ / of_.alone->setting.width() * cpu_seconds(*of_.alone);
    set(Fact::kMoreCpuTime, Estimate{is_work ? 0 : more, more, more});
    const double growth = cpu_seconds(all_) / std::max(1e-9, alone);
    set(Fact::kCpuTimeGrowth, growth);
    if (code_.known) set(Fact::kBeyondBandwidth, growth / (kBeyondBandwidth * width_ / of_.alone->setting.width()));
  }

  const Losses& of_;
  const Experiment& experiment_;
  const Gains& gains_;
  const CodeGrowth& code_;
  const Cell& all_;
  const Cell* best_;  // on all CPUs, with the best allocator: that of the program as it is, if none helps
  double others_;     // 0: a quiet machine, 1: one on which others took so much that limits are as wide as they get
  double width_, wall_s_, spun_;
  double lost_ = 1, idle_ = 0;
  Facts facts_;
};

}  // namespace

const FactDescription& describe(Fact fact) noexcept { return kFactDescriptions[static_cast<std::size_t>(fact)]; }

Gains gains_of(const Losses& losses) { return Treatments(losses).gains(); }

Facts facts_of(const Losses& losses, const Gains& gains) { return Room(losses, gains).facts(); }

bool no_malloc_can_help(const Attribution& recorded, const Cell& on_all) {
  const bool has_faults = page_faults_per_second(on_all) >= kFaultsPerSecond && system_share(on_all) >= kKernelAlone &&
                          fetched(on_all) > kFetchedOnce;
  const bool may_be_bloated = peak_bytes(on_all) - recorded.peak_live_bytes >= kLittleBytes;
  return most_time_in_malloc(recorded) < kNotWorthAnother && !has_faults && !may_be_bloated;
}

}  // namespace freehold::doctor
