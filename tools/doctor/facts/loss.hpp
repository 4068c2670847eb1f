// SPDX-License-Identifier: MIT
// The loss on all CPUs, and its parts: the allocator's (gone with another one), the machine's (copies lose it, too) and the
// quota's. A verdict rests on this arithmetic. Every figure is computed for one draw of the resampled costs, so that its
// limits follow from many draws.
#pragma once
#include <algorithm>
#include <cstddef>

#include "tools/doctor/facts/estimate.hpp"
#include "tools/doctor/facts/experiment.hpp"
#include "tools/doctor/facts/resampled.hpp"

namespace freehold::doctor {

struct Attribution;

// The parts of the time on all CPUs that is beyond the ideal, in the unit of costs.
struct Split {
  double all = 0;        // cost of the program
  double lost = 0;       // cost beyond the ideal
  double quota = 0;      // part of what is lost for CPUs that it never had
  double machine = 0;    // part that processes which share nothing lose as well
  double allocator = 0;  // part that is not lost under the best other allocator
  [[nodiscard]] double own() const noexcept { return std::max(0.0, lost - quota - machine - allocator); }
};

struct Losses {
  using Costs = Resampled::Costs;

  // The experiment and what was recorded (null: nothing) outlive this.
  Losses(const Experiment& of, const Attribution* recorded_of_it);

  const Experiment& experiment;
  const Attribution* recorded;
  Resampled costs;
  const Cell* alone = nullptr;     // cell of the program as it is on the fewest CPUs; null: there is only one setting
  const Cell* all = nullptr;       // cell of the program as it is on all CPUs; null: nothing was measured
  std::size_t best_allocator = 0;  // the variant that the allocator's part is measured by; 0: none helps

  // Returns the variant's cell; null: it was not measured there.
  [[nodiscard]] const Cell* cell(std::size_t variant, const Setting& setting) const;

  // Says whether the variant was tried on one CPU and on all. A treatment without both says nothing of scaling, because what
  // it saves on one CPU as well is no scaling.
  [[nodiscard]] bool has_pair(std::size_t variant) const;

  // The functions below need `alone` and `all`.
  // Returns the work on all CPUs divided by that on one.
  [[nodiscard]] double growth_of_work(const Costs& cost) const;
  // Returns what a variant loses on all CPUs. Pre: has_pair(variant).
  [[nodiscard]] double lost_with(const Costs& cost, std::size_t variant) const;
  [[nodiscard]] Split split(const Costs& cost) const;
  // Returns the share of the time on all CPUs that is lost.
  [[nodiscard]] Estimate lost() const;
  // Returns a part as a share of what is lost.
  [[nodiscard]] Estimate share(double Split::* part) const;
  // Threads that queue for a lock of the program's are served faster by a malloc that is faster while they hold it, on one
  // CPU as on all. That is a gain, but no scaling: then losses are compared relative to the time on one CPU.
  [[nodiscard]] bool waits_for_own_locks() const;

 private:
  [[nodiscard]] double ideal_on(const Costs& cost, double cost_alone, double cpus) const;
  [[nodiscard]] double ideal(const Costs& cost, double cost_alone) const;
  [[nodiscard]] double allowed_cpus() const;
};

}  // namespace freehold::doctor
