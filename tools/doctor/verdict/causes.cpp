// SPDX-License-Identifier: MIT
#include "tools/doctor/verdict/causes.hpp"

#include <algorithm>
#include <cmath>

#include "tools/doctor/facts/attribution.hpp"
#include "tools/doctor/facts/derived.hpp"

namespace freehold::doctor {
namespace {

// Shares are of what is lost unless said.
constexpr double kManyRemote = 0.4;        // share of the frees
constexpr double kAsleepInMalloc = 0.005;  // share of the threads' lives: they wait for each other there
constexpr double kSystemTime = 0.25;       // share of the CPU time: the kernel is busy for the program
constexpr double kFewerFaults = 0.5;       // that are left with another allocator
constexpr double kSystemTimeAlone = 0.1;   // the same on one CPU, where it is not threads that wake each other
constexpr double kFaultsPerSecond = 5000;
constexpr double kKernelInMalloc = 0.5;  // share of the CPU time, at least: the kernel's, and in malloc
constexpr double kPageBytes = 4096;
constexpr double kMapsItself = 0.5;        // share of the bytes that were faulted in: mapped by calls of the program's own
constexpr double kGrownOnce = 1.5;         // times the peak memory was faulted in
constexpr double kLockWaits = 0.5;         // share of the time that its part of the CPUs was lost
constexpr double kIdleShare = 0.5;         // share of what is lost: CPUs had nothing to do
constexpr double kIdleMalloc = 0.01;       // share of the time in malloc: no other one can help by being faster
constexpr double kNotWorthAnother = 0.02;  // share of the time in malloc: another one saves less than is advised
constexpr double kSeenInMalloc = 0.03;     // share of the CPU time: samples in malloc beyond the work
constexpr double kSharedLines = 0.05;      // share of the lines that were watched: where blocks lie may matter
constexpr double kBloat = 0.67;            // share of the memory that is enough with another allocator
constexpr double kBloatBytes = 32 << 20;   // and it is worth a word
constexpr double kGrowsAway = 0.3;      // of what another allocator saves: CPU time that it does not need only on all CPUs
constexpr double kBloatIsKernel = 0.3;  // of what another allocator saves: the kernel's time for memory that is fetched
constexpr double kMoreWorkIfShared = 0.25;  // share of what is lost: CPU time beyond that on one CPU
constexpr double kBesideIdleness = 0.5;     // share of the idle CPUs: time in loops that spin, which is why others idle
constexpr double kSurelyWork = 0.25;        // share of the CPU time that comes with threads, by which one CPU may differ
constexpr double kSleep_s = 20e-6;          // that a CPU idles at least when a thread goes to sleep and is woken
constexpr double kBeyondBandwidth = 1.5;    // times what each CPU waits if one alone keeps the memory busy
constexpr double kSomeSleeps = 0.25;        // share of all: so many in locks, and the others may be, too
constexpr double kFaultingGain = 1.25;      // surely, with another allocator: page faults alone are worth a verdict

using Costs = Resampled::Costs;

// What it holds had to be faulted in once; it is not given back and fetched again.
bool was_fetched_once(const Cell& on_all) { return page_faults(on_all) * kPageBytes <= kGrownOnce * peak_bytes(on_all); }
bool grows_in_malloc(const CodeGrowth& code) { return code.allocator >= kSeenInMalloc && !grows_outside_malloc(code); }
// The upper limit of the threads' time in malloc: CPU time and sleep.
double most_time_in_malloc(const Attribution& recorded) {
  return recorded.cpu_share + recorded.blocked_share +
         kNineOfTen * (recorded.cpu_share_error + recorded.blocked_share_error);
}

}  // namespace

bool no_malloc_can_help(const Attribution& recorded, const Cell& on_all) {
  const bool has_faults = page_faults_per_second(on_all) >= kFaultsPerSecond && system_share(on_all) >= kSystemTimeAlone &&
                          !was_fetched_once(on_all);
  const bool may_be_bloated = peak_bytes(on_all) - recorded.peak_live_bytes >= kBloatBytes;
  return most_time_in_malloc(recorded) < kNotWorthAnother && !has_faults && !may_be_bloated;
}

Cause Causes::allocator_cause(const Verdict& verdict) const {
  if (of_.best_allocator == 0) return Cause::kAllocatorLock;
  if (padding_explains()) return Cause::kAllocatorFalseSharing;
  const Cell& best = *of_.cell(of_.best_allocator, of_.all->setting);
  // What arenas hold had to be faulted in, once: little time, most of it the kernel's, and less of it with the memory.
  const double faults_left = page_faults(*of_.all) > 0 ? page_faults(best) / page_faults(*of_.all) : 1;
  const bool only_faulted_in = faults_left <= kBloat && was_fetched_once(*of_.all) && is_bloated(verdict) &&
                               system_share(*of_.alone) >= kSystemTimeAlone && is_kernel_time(best);
  // Blocks that another thread frees make arenas grow: what is counted comes before its consequence.
  const bool is_remote = of_.recorded != nullptr && of_.recorded->remote_share >= kManyRemote;
  if (is_remote && is_bloated(verdict) && is_credible(Cause::kRemoteFrees)) return Cause::kRemoteFrees;
  if (only_faulted_in || faults_go_with_arenas(verdict)) return Cause::kArenaBloat;
  if (is_faulting(*of_.all) && (faults_left <= kFewerFaults || kernel_works_for_malloc())) return Cause::kPageFaults;
  return is_remote ? Cause::kRemoteFrees : Cause::kAllocatorLock;
}

bool Causes::is_credible(Cause kind) const {
  if (of_.recorded == nullptr || of_.best_allocator == 0) return true;
  const bool is_hot = of_.recorded->cpu_share + of_.recorded->blocked_share >= kInMalloc;
  switch (kind) {
    case Cause::kAllocatorLock:
    case Cause::kRemoteFrees:
      if (!is_hot || of_.recorded->blocked_share >= kAsleepInMalloc) return is_hot;
      if (!work_grows_away()) return false;
      // Threads that wait for each other and do not sleep are seen where they wait.
      return of_.experiment.code.known ? grows_in_malloc(of_.experiment.code) : kind == Cause::kRemoteFrees || saves_most();
    case Cause::kAllocatorFalseSharing: {
      // Which threads use neighbouring blocks is not always seen: the thread that frees a block may not be one that uses it.
      if (of_.recorded->lines_shared > 0) return true;
      return !of_.waits_for_own_locks() && saves_most();
    }
    default: return true;
  }
}

bool Causes::is_faulting(const Cell& on_all) const {
  return page_faults_per_second(on_all) >= kFaultsPerSecond && system_share(on_all) >= kSystemTime &&
         system_share(*of_.alone) >= kSystemTimeAlone;
}

bool Causes::kernel_works_for_malloc() const {
  const auto both = [&](const Cell& cell) { return of_.recorded->cpu_share + system_share(cell) - 1; };
  return of_.recorded != nullptr && std::min(both(*of_.all), both(*of_.alone)) >= kKernelInMalloc;
}

bool Causes::maps_itself() const {
  return of_.recorded != nullptr && of_.recorded->mapped_bytes >= kMapsItself * kPageBytes * page_faults(*of_.all);
}

bool Causes::faults_go_with_arenas(const Verdict& verdict) const {
  const Variant* const capped = of_.experiment.find(Treatment::kCappedArenas);
  if (capped == nullptr || !is_bloated(verdict)) return false;
  const Cell* const with = of_.cell(static_cast<std::size_t>(capped - of_.experiment.variants.data()), of_.all->setting);
  return with != nullptr && peak_bytes(*with) <= kBloat * peak_bytes(*of_.all) &&
         page_faults(*with) <= kFewerFaults * page_faults(*of_.all);
}

bool Causes::padding_explains() const {
  const Variant* const padded = of_.experiment.find(Treatment::kPadded);
  if (padded == nullptr) return false;
  const auto variant = static_cast<std::size_t>(padded - of_.experiment.variants.data());
  if (variant == of_.best_allocator) return true;
  if (!of_.has_pair(variant)) return false;
  const double saved =
      of_.costs.estimate([&](const Costs& costs) { return of_.lost_with(costs, 0) - of_.lost_with(costs, variant); }).low;
  const double best =
      of_.costs
          .estimate([&](const Costs& costs) { return of_.lost_with(costs, 0) - of_.lost_with(costs, of_.best_allocator); })
          .value;
  return saved >= kPaddingExplains * best;
}

double Causes::more_work(std::size_t variant) const {
  return cpu_seconds(*of_.cell(variant, of_.all->setting)) -
         of_.growth_of_work(of_.costs.measured()) * cpu_seconds(*of_.cell(variant, of_.alone->setting));
}

// Threads that spin for each other on one CPU need much more than on all, where the one that they wait for runs.
bool Causes::does_more_work() const {
  double most_alone = 0;
  for (const Trial& trial : of_.alone->trials) most_alone = std::max(most_alone, trial.cpu_s());
  const double more = cpu_seconds(*of_.all) - most_alone;
  const auto is_as_much = [&](const Trial& trial) {
    return std::abs(trial.cpu_s() - cpu_seconds(*of_.all)) <= kSurelyWork * more;
  };
  const std::vector<Trial>& crowded = of_.experiment.crowded;
  return more > 0 && !crowded.empty() && std::ranges::all_of(crowded, is_as_much);
}

double Causes::saved_capacity() const {
  const Costs costs = of_.costs.measured();
  return (costs(*of_.all) - costs(*of_.cell(of_.best_allocator, of_.all->setting))) / costs(*of_.all) *
         median_of(*of_.all, &Trial::wall_s) * of_.all->setting.width();
}

bool Causes::work_grows_away() const {
  return more_work(0) - more_work(of_.best_allocator) >= kGrowsAway * saved_capacity();
}

bool Causes::saves_most() const {
  const Costs costs = of_.costs.measured();
  const double lost = of_.lost_with(costs, 0);
  return lost - of_.lost_with(costs, of_.best_allocator) >= kPaddingExplains * lost;
}

bool Causes::is_kernel_time(const Cell& best) const {
  return median_of(*of_.all, &Trial::system_s) - median_of(best, &Trial::system_s) >= kBloatIsKernel * saved_capacity();
}

Cause Causes::own_cause(const Verdict& verdict) const {
  const Cell* const best = of_.cell(of_.best_allocator, of_.all->setting);
  const Cell& rest = best != nullptr ? *best : *of_.all;
  const double spun = spun_share(of_.experiment, *of_.all);
  const auto idle = [&](double taken_counts) {
    return spun + median_of(rest, [&](const Trial& trial) {
             const double used = trial.cpu_s() + taken_counts * trial.taken_s;
             return std::max(0.0, 1 - used / (trial.wall_s * of_.all->setting.width()));
           });
  };
  const double lost = verdict.lost.value;
  if (lock_time() >= kLockWaits * std::min(lost, 0.5)) return Cause::kOwnLock;
  if (is_faulting(rest)) return maps_itself() ? Cause::kOwnPageFaults : Cause::kUndecided;
  if (const auto seen = cause_in_code(lost, idle(1))) return *seen;
  const double capacity = median_of(*of_.all, &Trial::wall_s) * of_.all->setting.width();
  const double redundant = does_more_work() ? std::max(0.0, more_work(0) / capacity) : 0;
  if (idle(1) >= kIdleShare * std::max(lost - redundant, redundant)) return cause_of_idleness(idle(1));
  if (idle(0) >= kIdleShare * lost || redundant >= kIdleShare * lost) return Cause::kUndecided;
  if (grows_in_built_in_malloc()) return Cause::kUndecided;
  const bool did_more = more_work(0) >= kMoreWorkIfShared * lost * capacity;
  return did_more && (was_copied() || !of_.experiment.can_be_copied || is_beyond_bandwidth()) ? Cause::kOwnSharing
                                                                                              : Cause::kUndecided;
}

bool Causes::grows_in_built_in_malloc() const {
  const auto is_as_it_is = [](const Cell& of) { return of.variant == 0 || of.trials.empty(); };
  return of_.experiment.code.known && grows_in_malloc(of_.experiment.code) &&
         std::ranges::all_of(of_.experiment.cells, is_as_it_is);
}

bool Causes::is_beyond_bandwidth() const {
  const double most = kBeyondBandwidth * of_.all->setting.width() / of_.alone->setting.width();
  return of_.experiment.code.known &&
         cpu_seconds(*of_.all) > most * of_.growth_of_work(of_.costs.measured()) * cpu_seconds(*of_.alone);
}

double Causes::lock_time() const {
  if (of_.recorded == nullptr) return 0;
  const double waits = of_.recorded->lock_wait_share;
  if (waits < kSomeLockWaits || is_faulting(*of_.all)) return waits;
  const double capacity = median_of(*of_.all, &Trial::wall_s) * of_.all->setting.width();
  const double more = median_of(*of_.all, &Trial::system_s) -
                      of_.growth_of_work(of_.costs.measured()) * median_of(*of_.alone, &Trial::system_s);
  return waits + std::max(0.0, more) / capacity;
}

// Threads that sleep in malloc's locks look the same. Of sleeps that are too short to be seen each costs the CPUs a while.
Cause Causes::cause_of_idleness(double idle) const {
  if (of_.recorded != nullptr && of_.recorded->blocked_share >= kAsleepInMalloc) return Cause::kSerial;
  const CodeGrowth& code = of_.experiment.code;
  const double wall = median_of(*of_.all, &Trial::wall_s), width = of_.all->setting.width();
  const double sleeps = median_of(*of_.all, [](const Trial& trial) { return double(trial.voluntary_switches); });
  const double asleep = sleeps * kSleep_s / (wall * width), enough = kBesideIdleness * idle;
  const double recorded = of_.recorded != nullptr ? of_.recorded->lock_wait_share : 0;
  if (std::max({recorded, code.lock_sleepers / width, code.lock_sleeps * asleep}) >= enough) return Cause::kOwnLock;
  return code.lock_sleeps >= kSomeSleeps && asleep >= enough ? Cause::kUndecided : Cause::kSerial;
}

std::optional<Cause> Causes::cause_in_code(double lost, double idle) const {
  const CodeGrowth& code = of_.experiment.code;
  if (!code.known) return std::nullopt;
  const double capacity = median_of(*of_.all, &Trial::wall_s) * of_.all->setting.width();
  const double busy = std::min(1.0, cpu_seconds(*of_.all) / capacity);
  const double least = std::max(kMoreWorkIfShared * lost, kBesideIdleness * idle) / std::max(busy, 0.01);
  const bool is_mallocs = of_.recorded == nullptr || of_.recorded->cpu_share + of_.recorded->blocked_share > kInMalloc;
  const double locking = code.spinning + code.locking + (is_mallocs ? 0 : code.private_locking);
  const double sharing = code.contended + (was_copied() && !does_more_work() ? code.slowed : 0);
  if (locking + sharing < least) return std::nullopt;
  // What a lock protects moves from CPU to CPU with it, and so does the word that waiters try to set by an atomic operation.
  // Without a lock nothing is spent on one.
  return locking >= std::max(kMoreWorkIfShared * lost, code.contended / 2) ? Cause::kOwnLock : Cause::kOwnSharing;
}

bool Causes::was_copied() const {
  return std::ranges::any_of(of_.experiment.cells,
                             [](const Cell& of) { return of.variant == 0 && of.setting.copies > 1 && !of.trials.empty(); });
}

bool Causes::padding_was_tried() const {
  const Variant* const padded = of_.experiment.find(Treatment::kPadded);
  if (padded == nullptr) return true;
  const auto variant = static_cast<std::size_t>(padded - of_.experiment.variants.data());
  return std::ranges::any_of(of_.experiment.cells, [&](const Cell& of) {
    return of.variant == variant && of.setting == of_.all->setting && (!of.trials.empty() || !of.failure.empty());
  });
}

bool Causes::malloc_is_idle(std::size_t variant) const {
  // A runtime's switch gives malloc calls that were not recorded.
  const Variant& tried = of_.experiment.variants[variant];
  if (of_.recorded == nullptr || (tried.treatment == Treatment::kPeer && !tried.environment.empty())) return false;
  const Cell* const with = of_.cell(variant, of_.all->setting);
  const bool same_faults = with == nullptr || page_faults(*with) > kAsManyFaults * page_faults(*of_.all);
  return most_time_in_malloc(*of_.recorded) < kIdleMalloc && (same_faults || system_share(*of_.all) < kSystemTimeAlone);
}

bool Causes::placement_matters(const Verdict& verdict) const {
  if (of_.recorded == nullptr) return true;
  const auto shared = static_cast<double>(of_.recorded->lines_shared);
  return (shared > 0 && shared >= kSharedLines * static_cast<double>(of_.recorded->lines_watched)) ||
         std::ranges::any_of(verdict.fixes, [&](const Fix& fix) {
           const bool is_padded = of_.experiment.variants[fix.variant].treatment == Treatment::kPadded;
           return is_padded && fix.helps;
         });
}

double Causes::time_of_faults(const Verdict& verdict) const {
  if (!is_faulting(*of_.all)) return 0;
  double most = 1;
  for (const Fix& fix : verdict.fixes) {
    const Cell* const with = of_.cell(fix.variant, of_.all->setting);
    if (fix.helps && with != nullptr && page_faults(*with) <= kFewerFaults * page_faults(*of_.all))
      most = std::max(most, fix.gain.low);
  }
  return most >= kFaultingGain ? 1 - 1 / most : 0;
}

bool Causes::is_bloated(const Verdict& verdict) const {
  const double bytes = peak_bytes(*of_.all);
  return std::ranges::any_of(verdict.fixes, [&](const Fix& fix) {
    const Treatment treatment = of_.experiment.variants[fix.variant].treatment;
    const bool fewer_arenas = treatment == Treatment::kCappedArenas || treatment == Treatment::kFreehold;
    return fewer_arenas && !fix.failed && fix.memory.value > 0 && fix.memory.value <= kBloat &&
           bytes * (1 - fix.memory.value) >= kBloatBytes;
  });
}

}  // namespace freehold::doctor
