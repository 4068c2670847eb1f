// SPDX-License-Identifier: MIT
// A control experiment without the program: how much slower arithmetic and streaming through memory become if every CPU does
// them at the same time, in processes that share nothing. A reading takes about 70 ms.
#pragma once
#include <vector>

#include "tools/doctor/facts/experiment.hpp"

namespace freehold::doctor {

// Readings, of which the medians are the control: some before the experiment, some after it.
class MachineControl {
 public:
  // Pre: one thread; `cpus` may be used by this process, the first stands for "alone".
  explicit MachineControl(std::vector<unsigned> cpus) : cpus_(std::move(cpus)) {}

  void read(unsigned readings);
  // Returns the control of what has been read; 1 without.
  [[nodiscard]] Control control() const;

 private:
  std::vector<unsigned> cpus_;
  std::vector<double> compute_, memory_;
};

}  // namespace freehold::doctor
