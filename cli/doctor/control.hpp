// What the machine gives to processes that share nothing: arithmetic, and streaming through memory, by one process alone and
// by one on each CPU at the same time. A reading takes about 70 ms.
#pragma once
#include <vector>

#include "freehold/doctor/experiment.hpp"

namespace freehold::cli::doctor {

// Readings, of which the medians are the control: some before the experiment, some after it.
class MachineControl {
 public:
  // Pre: one thread; `cpus` may be used by this process, the first stands for "alone".
  explicit MachineControl(std::vector<unsigned> cpus) : cpus_(std::move(cpus)) {}

  void read(unsigned readings);
  // Of what has been read; 1 without.
  [[nodiscard]] freehold::doctor::Control control() const;

 private:
  std::vector<unsigned> cpus_;
  std::vector<double> compute_, memory_;
};

}  // namespace freehold::cli::doctor
