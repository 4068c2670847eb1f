// SPDX-License-Identifier: MIT
// Made-up experiments, for tests of the reasoning: what each treatment takes on one CPU and on all is up to the test.
#pragma once
#include <cmath>
#include <random>
#include <string_view>

#include "tools/doctor/facts/attribution.hpp"
#include "tools/doctor/verdict/verdict.hpp"

namespace freehold::doctor {

inline constexpr unsigned kCpus = 4;

// A program of one second's work for one CPU; what it takes on all of them, with each treatment, is up to the test.
class Made {
 public:
  explicit Made(double spread = 0.01, unsigned trials = 5, std::uint64_t seed = 1)
      : spread_(spread), trials_(trials), random_(seed) {
    experiment_.machine_cpus = experiment_.affinity_cpus = experiment_.online_cpus = kCpus;
    experiment_.variants = {{Treatment::kNone, "system", {}},
                            {Treatment::kCappedArenas, "glibc, 1 arena", {}},
                            {Treatment::kPadded, "padded", {}},
                            {Treatment::kFreehold, "freehold", {}},
                            {Treatment::kPeer, "jemalloc", {}}};
  }
  // Seconds on one CPU, and on all.
  Made& takes(std::size_t variant, double alone, double all) {
    add(variant, {.cpus = 1}, alone, 1);
    add(variant, {.cpus = kCpus}, all, kCpus);
    return *this;
  }
  // On all only: there was no time for more.
  Made& takes_on_all(std::size_t variant, double all) {
    add(variant, {.cpus = kCpus}, all, kCpus);
    return *this;
  }
  // The same for all treatments from the second on.
  Made& treated(double alone, double all) {
    for (std::size_t v = 1; v < experiment_.variants.size(); ++v) takes(v, alone, all);
    return *this;
  }
  Made& copies(double each) {
    add(0, {.cpus = 1, .copies = kCpus}, each, 1);
    return *this;
  }
  template <class Change>
  Made& trials(std::size_t variant, Change change) {
    for (Cell& cell : experiment_.cells)
      if (cell.variant == variant && cell.setting.copies == 1)
        for (Trial& trial : cell.trials) change(trial);
    return *this;
  }
  // Multiplies the time that all CPUs spend by this share.
  Made& busy(std::size_t variant, double share) {
    for (Cell& cell : experiment_.cells)
      if (cell.variant == variant && cell.setting.cpus == kCpus)
        for (Trial& trial : cell.trials) trial.user_s *= share;
    return *this;
  }
  // Other processes take `share` of the time in which a thread is ready, from all threads alike.
  Made& beside_others(double share) {
    for (Cell& cell : experiment_.cells)
      for (Trial& trial : cell.trials) {
        trial.taken_s = trial.stolen_s = trial.cpu_s() * share / (1 - share);
        trial.wall_s += trial.taken_s / cell.setting.cpus;
      }
    return *this;
  }

  [[nodiscard]] Verdict verdict(const Attribution* recorded = nullptr) const { return verdict_of(experiment_, recorded); }
  Experiment experiment_;

 private:
  void add(std::size_t variant, const Setting& setting, double seconds, unsigned cpus) {
    Cell cell{.variant = variant, .setting = setting, .trials = {}, .failure = {}};
    std::normal_distribution<double> noise(0, spread_);
    for (unsigned i = 0; i < trials_; ++i) {
      Trial trial;
      trial.wall_s = seconds * std::exp(noise(random_));
      trial.user_s = trial.wall_s * cpus;
      trial.peak_rss_bytes = 100 << 20;
      cell.trials.push_back(trial);
    }
    experiment_.cells.push_back(cell);
  }

  double spread_;
  unsigned trials_;
  std::mt19937_64 random_;
};

inline std::string_view found(const Verdict& verdict) { return name_of(verdict.cause); }

}  // namespace freehold::doctor
