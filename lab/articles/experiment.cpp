// SPDX-License-Identifier: MIT
#include "lab/articles/experiment.hpp"

#include <algorithm>
#include <iterator>

#include "lab/experiment/run.hpp"
#include "lab/pools/experiment.hpp"
#include "lab/scale/experiment.hpp"
#include "lab/scale/verdict.hpp"
#include "lab/timers/experiment.hpp"

namespace freehold::cli::articles {
namespace {

class Experiment {
 public:
  Experiment(Interrupts& interrupts, Progress& progress) : interrupts_(interrupts), progress_(progress) {}

  template <class Part, class Settings, class Run>
  void part(std::optional<Part>& result, const std::optional<Settings>& settings, Run run) {
    if (!settings || interrupts_.arrived() != 0) return;
    result = run(*settings);
    complete_ &= result->complete;
  }
  void pools(std::optional<pools::Results>& result, const std::optional<pools::Settings>& settings) {
    part(result, settings, [&](const auto& s) { return pools::run_experiment(s, interrupts_, progress_); });
  }
  void timers(std::optional<timers::Results>& result, const std::optional<timers::Settings>& settings) {
    part(result, settings, [&](const auto& s) { return timers::run_experiment(s, interrupts_, progress_); });
  }
  void scale(std::optional<scale::Results>& result, const std::optional<scale::Settings>& settings) {
    part(result, settings, [&](const auto& s) { return scale::run_experiment(s, interrupts_, progress_); });
  }
  [[nodiscard]] bool is_complete() const { return complete_ && interrupts_.arrived() == 0; }

 private:
  Interrupts& interrupts_;
  Progress& progress_;
  bool complete_ = true;
};

void add_failures(std::vector<std::string>& all, const auto& part) {
  if (part) std::ranges::move(failures_of(*part), std::back_inserter(all));
}

}  // namespace

Results run_experiment(const Plan& plan, Interrupts& interrupts, Progress& progress) {
  Results results;
  results.plan = plan;
  record_run(results, [&] {
    Experiment experiment(interrupts, progress);
    experiment.pools(results.crc, plan.crc);
    experiment.pools(results.several, plan.several);
    experiment.pools(results.fewer, plan.fewer);
    experiment.pools(results.alone, plan.alone);
    experiment.timers(results.timers, plan.timers);
    experiment.scale(results.scaling, plan.scaling);
    experiment.scale(results.one_cpu, plan.one_cpu);
    experiment.scale(results.blocks, plan.blocks);
    return experiment.is_complete();
  });
  return results;
}

std::vector<std::string> failures_of(const Results& results) {
  std::vector<std::string> all;
  for (const auto* part : {&results.crc, &results.several, &results.fewer, &results.alone}) add_failures(all, *part);
  add_failures(all, results.timers);
  for (const auto* part : {&results.scaling, &results.one_cpu, &results.blocks}) add_failures(all, *part);
  return all;
}

}  // namespace freehold::cli::articles
