// SPDX-License-Identifier: MIT
// Properties of every verdict, on thousands of experiments that are made up, so that their cause is known: programs of one
// cause each with one to 64 threads, on two to sixteen CPUs. There is noise, neighbours take CPUs, variants, trials, copies
// and recordings are missing, quotas limit, and treatments fail.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <random>
#include <sstream>

#include "tools/doctor/facts/attribution.hpp"
#include "tools/doctor/facts/derived.hpp"
#include "tools/doctor/facts/resampled.hpp"
#include "tools/doctor/verdict/clarity.hpp"
#include "tools/doctor/verdict/verdict.hpp"

namespace freehold::doctor {
namespace {

// A program's needs in a setting, if it is not disturbed.
struct Needs {
  double wall_s = 0;
  double cpu_s = 0;
  double system_s = 0;
  double faults = 1000;
  double peak = 100 << 20;
};

struct Conditions {
  double spread = 0.02;
  unsigned trials = 5;
  unsigned neighbours = 0;  // processes that keep a CPU busy
  bool complete = true;     // nothing is missing
};

// A program with one cause, by which a part of its time on all CPUs is lost.
class World {
 public:
  World(Cause truth, const Conditions& conditions, std::uint64_t seed)
      : truth_(truth), conditions_(conditions), random_(seed) {
    cpus_ = 2U << below(4);
    lost_ = 0.35 + 0.5 * (1 - 2.0 / (cpus_ + 1)) * uniform();
    malloc_share_ = 0.05 + 0.3 * uniform();
    make();
  }

  Experiment experiment;
  Attribution recorded;
  bool has_recording = true;
  [[nodiscard]] const Attribution* recording() const { return has_recording ? &recorded : nullptr; }

 private:
  [[nodiscard]] double uniform() { return std::uniform_real_distribution<double>(0, 1)(random_); }
  [[nodiscard]] unsigned below(unsigned most) { return std::uniform_int_distribution<unsigned>(0, most - 1)(random_); }
  [[nodiscard]] bool chance(double of) { return uniform() < of; }

  void make() {
    experiment.looks = 6;  // as with a budget
    experiment.machine_cpus = experiment.affinity_cpus = experiment.online_cpus = cpus_;
    experiment.most_threads = truth_ == Cause::kSerial && chance(0.3) ? 1 : 1 + cpus_ + below(64 - cpus_);
    one_thread_ = experiment.most_threads == 1;
    if (truth_ == Cause::kCpuQuota) experiment.own_cpus = 1 + below(cpus_ / 2);
    experiment.variants = {{Treatment::kNone, "system", {}}};
    for (const auto& [treatment, name] :
         {std::pair(Treatment::kCappedArenas, "glibc, 2 arenas"), std::pair(Treatment::kPadded, "padded"),
          std::pair(Treatment::kFreehold, "freehold"), std::pair(Treatment::kPeer, "jemalloc")})
      if (conditions_.complete || chance(0.8)) experiment.variants.push_back({treatment, name, {}});
    for (std::size_t v = 0; v < experiment.variants.size(); ++v) run(v);
    if (conditions_.complete || chance(0.8)) copy();
    record();
  }

  void run(std::size_t variant) {
    const Treatment treatment = experiment.variants[variant].treatment;
    const double speed = treatment == Treatment::kFreehold || treatment == Treatment::kPeer ? 0.4 + 0.8 * uniform() : 1;
    if (conditions_.complete || variant == 0 || chance(0.8)) add(variant, {.cpus = 1}, needs(treatment, 1, speed));
    if (conditions_.complete || variant == 0 || chance(0.9)) add(variant, {.cpus = cpus_}, needs(treatment, cpus_, speed));
    if (!conditions_.complete && variant != 0 && chance(0.05) && experiment.cells.back().variant == variant)
      experiment.cells.back().failure = "exit code 1";
  }

  [[nodiscard]] bool is_mended_by(Treatment treatment) const {
    switch (truth_) {
      case Cause::kAllocatorLock:
      case Cause::kRemoteFrees:
      case Cause::kPageFaults: return treatment == Treatment::kFreehold || treatment == Treatment::kPeer;
      case Cause::kAllocatorFalseSharing: return treatment == Treatment::kPadded || treatment == Treatment::kFreehold;
      default: return false;
    }
  }

  // One second on one CPU; malloc's part of it is `speed` times that under another allocator.
  [[nodiscard]] Needs needs(Treatment treatment, unsigned cpus, double speed) const {
    const double work = 1 - malloc_share_ + malloc_share_ * speed;
    Needs needs{.wall_s = work / cpus, .cpu_s = work, .system_s = 0.01 * work};
    const bool faulting = truth_ == Cause::kPageFaults && !is_mended_by(treatment);
    const bool mapping = truth_ == Cause::kOwnPageFaults;
    if (faulting || mapping) needs.faults = 200'000, needs.system_s = 0.3 * work;
    if (truth_ == Cause::kArenaBloat && (treatment == Treatment::kNone || treatment == Treatment::kPadded)) needs.peak *= 3;
    if (cpus == 1 || is_mended_by(treatment) || truth_ == Cause::kNone || truth_ == Cause::kArenaBloat) return needs;
    const double wall = needs.wall_s / (1 - lost_);
    const double idle_part = is_asleep() ? 1 : 0;
    needs.cpu_s = idle_part > 0 ? work * 1.02 : std::max(work, wall * cpus);
    if (truth_ == Cause::kSerial && one_thread_) needs.cpu_s = work;
    needs.wall_s = one_thread_ ? work : wall;
    if (truth_ == Cause::kCpuQuota) needs.wall_s = work / experiment.own_cpus, needs.cpu_s = work;
    if (faulting || mapping) needs.system_s = 0.6 * needs.cpu_s;
    return needs;
  }
  [[nodiscard]] bool is_asleep() const {
    return truth_ == Cause::kSerial || truth_ == Cause::kOwnLock || truth_ == Cause::kCpuQuota ||
           (truth_ == Cause::kAllocatorLock && sleeps_);
  }

  void copy() {
    Needs each = needs(Treatment::kNone, 1, 1);
    if (truth_ == Cause::kMemoryBandwidth) each.wall_s /= 1 - lost_, each.cpu_s /= 1 - lost_;
    add(0, {.cpus = 1, .copies = cpus_}, each);
  }

  void record() {
    has_recording = conditions_.complete || chance(0.8);
    recorded.threads = experiment.most_threads;
    recorded.cpu_share = malloc_share_;
    switch (truth_) {
      case Cause::kAllocatorLock: recorded.cpu_share = 0.5, recorded.blocked_share = sleeps_ ? lost_ : 0.1; break;
      case Cause::kRemoteFrees: recorded.cpu_share = 0.5, recorded.remote_share = 0.7; break;
      case Cause::kAllocatorFalseSharing: recorded.lines_shared = 100; break;
      case Cause::kOwnLock:
        recorded.lock_wait_share = 0.9 * lost_;
        recorded.lock_waits.resize(1);
        recorded.lock_waits[0].count = 1e5;
        recorded.lock_waits[0].seconds = 10;
        break;
      case Cause::kOwnPageFaults: recorded.mapped_bytes = 4096 * 200'000.0; break;
      default: break;
    }
  }

  void add(std::size_t variant, const Setting& setting, const Needs& needs) {
    Cell cell{.variant = variant, .setting = setting, .trials = {}, .failure = {}};
    const unsigned trials = conditions_.complete ? conditions_.trials : 1 + below(conditions_.trials);
    for (unsigned i = 0; i < trials; ++i) cell.trials.push_back(trial(setting, needs));
    experiment.cells.push_back(cell);
  }

  [[nodiscard]] Trial trial(const Setting& setting, const Needs& needs) {
    std::normal_distribution<double> noise(0, conditions_.spread);
    const double slow = std::exp(noise(random_)), work = std::exp(noise(random_) / 2);
    Trial trial;
    trial.wall_s = needs.wall_s * slow;
    const double cpu_s = std::min(needs.cpu_s * work, trial.wall_s * setting.cpus);
    // Each neighbour takes up to half of a CPU that the program wants; it was idle on some of what the neighbour had.
    const double wanted = trial.wall_s * setting.cpus * (cpu_s / (trial.wall_s * setting.cpus));
    const double taken = std::min<double>(conditions_.neighbours, setting.cpus) * uniform() * wanted / setting.cpus;
    const double each = 1.0 / setting.cpus;
    trial.wall_s += taken * (each + (1 - each) * uniform());
    trial.taken_s = taken;
    trial.stolen_s = taken + conditions_.neighbours * 0.3 * trial.wall_s;
    trial.system_s = needs.system_s * cpu_s / needs.cpu_s;
    trial.user_s = cpu_s - trial.system_s;
    trial.page_faults = static_cast<std::uint64_t>(needs.faults);
    trial.peak_rss_bytes = static_cast<std::uint64_t>(needs.peak);
    return trial;
  }

  Cause truth_;
  Conditions conditions_;
  std::mt19937_64 random_;
  unsigned cpus_ = 2;
  double lost_ = 0;
  double malloc_share_ = 0;
  bool one_thread_ = false;
  bool sleeps_ = random_() % 2 == 0;
};

constexpr Cause kTruths[] = {
    Cause::kNone,          Cause::kAllocatorLock,   Cause::kRemoteFrees, Cause::kAllocatorFalseSharing,
    Cause::kPageFaults,    Cause::kArenaBloat,      Cause::kOwnLock,     Cause::kOwnSharing,
    Cause::kOwnPageFaults, Cause::kMemoryBandwidth, Cause::kCpuQuota,    Cause::kSerial};

double median_of(const Experiment& experiment, std::size_t variant, const Setting& setting, double Trial::* field) {
  const Cell* const cell = experiment.find(variant, setting);
  if (cell == nullptr || cell->trials.empty()) return NAN;
  std::vector<double> values;
  for (const Trial& trial : cell->trials) values.push_back(trial.*field);
  return median(values);
}

// Checks what is true of a verdict by the words that it is said in, whatever the experiment.
void expect_no_contradiction(const Experiment& experiment, const Verdict& verdict) {
  double sum = 0;
  for (const Part& part : verdict.parts) {
    EXPECT_GE(part.share.value, 0);
    EXPECT_LE(part.share.low, part.share.value);
    EXPECT_GE(part.share.high, part.share.value);
    sum += part.share.value;
  }
  EXPECT_LE(sum, 1.02);
  EXPECT_EQ(verdict.cause == Cause::kUndecided, verdict.doubt != Doubt::kNone) << "undecided is said with its reason";
  const double system_all = median_of(experiment, 0, verdict.all, &Trial::wall_s);
  double best = 1;
  for (const Fix& fix : verdict.fixes) {
    const double with = median_of(experiment, fix.variant, verdict.all, &Trial::wall_s);
    if (!fix.failed && with > 0) best = std::max(best, system_all / with);
  }
  if (verdict.best_fix) {
    EXPECT_TRUE(verdict.fixes[*verdict.best_fix].helps);
    EXPECT_FALSE(verdict.fixes[*verdict.best_fix].failed);
    EXPECT_GT(verdict.fixes[*verdict.best_fix].gain.value, 1.04);
  }
  if (blames_allocator(verdict.cause) && verdict.cause != Cause::kArenaBloat) {
    EXPECT_TRUE(verdict.best_fix) << "blamed, and nothing is better";
    EXPECT_GT(best, 1.0);
  }
  if (verdict.cause == Cause::kNone) {
    EXPECT_LT(verdict.lost.high, 0.25) << "the limits exclude a loss";
    for (const Setting& setting : {verdict.alone, verdict.all}) {
      const Cell* const cell = experiment.find(0, setting);
      ASSERT_NE(cell, nullptr);
      EXPECT_GE(cell->trials.size(), 2U) << "one trial excludes nothing";
    }
    for (const Fix& fix : verdict.fixes) {
      EXPECT_FALSE(fix.helps && fix.gain.low >= 2) << "nothing is wrong, and another allocator is twice as fast";
    }
  }
  if (verdict.cause == Cause::kArenaBloat) {
    EXPECT_LT(verdict.lost.low, 0.5) << "memory, not time";
  }
  if (verdict.one_thread) {
    EXPECT_FALSE(verdict.cause == Cause::kAllocatorLock || verdict.cause == Cause::kOwnLock ||
                 verdict.cause == Cause::kRemoteFrees || verdict.cause == Cause::kOwnSharing ||
                 verdict.cause == Cause::kAllocatorFalseSharing || verdict.cause == Cause::kMixed)
        << "one thread waits for no other";
    EXPECT_EQ(verdict.allocator_share.value, 0);
  }
}

struct Tally {
  unsigned nones = 0;  // verdicts that nothing is lost
  unsigned asked = 0, right = 0, undecided = 0, wrong = 0, blamed_in_vain = 0, contradictions = 0;
  std::map<std::string, unsigned> errors;
  [[nodiscard]] std::string text() const {
    std::ostringstream out;
    out << asked << " asked: " << right << " right, " << undecided << " undecided, " << wrong << " wrong";
    for (const auto& [error, count] : errors) out << "\n  " << error << ": " << count;
    return out.str();
  }
};

void ask(Cause truth, const Conditions& conditions, std::uint64_t seed, Tally& tally) {
  SCOPED_TRACE(std::string(name_of(truth)) + ", seed " + std::to_string(seed));
  const World world(truth, conditions, seed);
  const Verdict verdict = verdict_of(world.experiment, world.recording());
  expect_no_contradiction(world.experiment, verdict);
  ++tally.asked;
  tally.nones += verdict.cause == Cause::kNone;
  tally.contradictions += verdict.doubt == Doubt::kContradiction;
  tally.blamed_in_vain += blames_allocator(verdict.cause) && !blames_allocator(truth);
  if (verdict.cause == truth) {
    ++tally.right;
    return;
  }
  ++(verdict.cause == Cause::kUndecided ? tally.undecided : tally.wrong);
  ++tally.errors[std::string(name_of(truth)) + " -> " + std::string(name_of(verdict.cause)) +
                 (verdict.doubt != Doubt::kNone ? ", " + std::string(name_of(verdict.doubt)) : std::string()) +
                 (verdict.doubt != Doubt::kNone && verdict.suspected != Cause::kUndecided
                      ? " of " + std::string(name_of(verdict.suspected))
                      : std::string())];
}

Tally ask_all(const Conditions& conditions, unsigned times, std::uint64_t first_seed = 0) {
  const char* const scale = std::getenv("FREEHOLD_TEST_SCALE");
  if (scale != nullptr) times *= static_cast<unsigned>(std::max(1L, std::strtol(scale, nullptr, 10)));
  Tally tally;
  for (const Cause truth : kTruths)
    for (std::uint64_t seed = first_seed; seed < first_seed + times; ++seed) ask(truth, conditions, seed, tally);
  return tally;
}

TEST(VerdictProperty, QuietMachine_RightAndNeverInVain) {
  const Tally tally = ask_all({.spread = 0.02, .trials = 5}, 30);
  EXPECT_GE(tally.right, tally.asked * 95 / 100) << tally.text();
  EXPECT_LE(tally.wrong, tally.asked / 1000) << tally.text();
  EXPECT_EQ(tally.contradictions, 0U) << "what a clear experiment says agrees with itself: " << tally.text();
}

TEST(VerdictProperty, NoisyTrials_SeldomWrong) {
  const Tally tally = ask_all({.spread = 0.08, .trials = 4}, 30);
  EXPECT_GE(tally.right, tally.asked * 80 / 100) << tally.text();
  EXPECT_LE(tally.wrong, tally.asked * 2 / 100) << tally.text();
  EXPECT_LE(tally.blamed_in_vain, tally.asked / 100) << tally.text();
}

TEST(VerdictProperty, BusyNeighbours_FewerDecidedAndNoneWrong) {
  for (const unsigned neighbours : {1U, 2U, 6U}) {
    const Tally tally = ask_all({.spread = 0.03, .trials = 4, .neighbours = neighbours}, 25, 10000 * neighbours);
    EXPECT_LE(tally.wrong, tally.asked / 1000) << neighbours << " neighbours, " << tally.text();
    EXPECT_GE(tally.right, tally.asked *
                               (neighbours == 1   ? 25
                                : neighbours == 2 ? 8
                                                  : 1) /
                               100)
        << neighbours << " neighbours, " << tally.text();
  }
}

// A verdict that ends the trials after two or three of each is right.
TEST(VerdictProperty, ClearAfterFewTrials_Right) {
  unsigned clear = 0;
  for (const double spread : {0.02, 0.06})
    for (const unsigned trials : {2U, 3U})
      for (const Cause truth : kTruths)
        for (std::uint64_t seed = 50000; seed < 50008; ++seed) {
          const World world(truth, {.spread = spread, .trials = trials}, seed);
          const Verdict verdict = verdict_of(world.experiment, world.recording());
          if (!is_clear(world.experiment, verdict)) continue;
          ++clear;
          EXPECT_EQ(name_of(verdict.cause), name_of(truth)) << seed << ", " << trials << " trials that differ by " << spread;
        }
  EXPECT_GE(clear, 50U) << "of 384";
}

// With one trial of each nothing is excluded, so that no program is said to scale.
TEST(VerdictProperty, OneTrialOfEach_NeverNone) {
  for (const double spread : {0.02, 0.1}) {
    const Tally tally = ask_all({.spread = spread, .trials = 1}, 20, 70000);
    EXPECT_EQ(tally.nones, 0U) << tally.text();
  }
}

// Programs that scale under every allocator, and that another one makes many times as fast.
TEST(VerdictProperty, ScalesButFarFasterWithAnother_NeverNone) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    for (const bool has_faults : {false, true}) {
      World world(Cause::kNone, {.spread = 0.02, .trials = 3}, seed);
      for (Cell& cell : world.experiment.cells) {
        const Treatment treatment = world.experiment.variants[cell.variant].treatment;
        const bool is_fast = treatment == Treatment::kFreehold || treatment == Treatment::kPeer;
        for (Trial& trial : cell.trials) {
          for (double* const seconds : {&trial.wall_s, &trial.user_s, &trial.system_s}) *seconds *= is_fast ? 1 : 11;
          if (is_fast || !has_faults) continue;
          trial.page_faults = static_cast<std::uint64_t>(1e5 * trial.wall_s);
          trial.system_s = 0.8 * trial.cpu_s();
          trial.user_s = trial.system_s / 4;
        }
      }
      const Verdict verdict = verdict_of(world.experiment, world.recording());
      expect_no_contradiction(world.experiment, verdict);
      EXPECT_EQ(verdict.cause, has_faults ? Cause::kPageFaults : Cause::kUndecided) << seed;
    }
  }
}

}  // namespace
}  // namespace freehold::doctor
