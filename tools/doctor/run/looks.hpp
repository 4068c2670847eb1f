// SPDX-License-Identifier: MIT
// The verdicts that are formed while trials go on, and whether they end these: a verdict that is clear and stays the same,
// or one that stays the same over many rounds. Any look may end them, so that all looks share one error
// (Experiment::looks). Pure; one thread.
#pragma once
#include <array>
#include <cstddef>
#include <vector>

#include "tools/doctor/facts/experiment.hpp"
#include "tools/doctor/verdict/verdict.hpp"

namespace freehold::doctor {

class Looks {
 public:
  static constexpr unsigned kMost = 6;

  [[nodiscard]] bool are_left() const noexcept { return taken_ < kMost; }
  // True if so many rounds are enough for the next look.
  [[nodiscard]] bool is_due(unsigned rounds) const noexcept { return are_left() && rounds >= kAfter[taken_]; }
  [[nodiscard]] unsigned taken() const noexcept { return taken_; }
  [[nodiscard]] const Verdict& last() const noexcept { return last_; }

  // The verdict of the trials so far.
  void add(const Experiment& experiment, Verdict verdict);
  // True if it is decided and will stay so.
  [[nodiscard]] bool are_settled(unsigned rounds) const noexcept;
  // Variants whose trials decide what is open, the program as it is first.
  [[nodiscard]] std::vector<std::size_t> deciding(const Experiment& experiment) const;

 private:
  static constexpr std::array<unsigned, kMost> kAfter{2, 3, 4, 8, 16, 32};  // rounds

  Verdict last_;
  unsigned taken_ = 0;
  unsigned same_ = 0;   // the last ones that named one cause
  unsigned clear_ = 0;  // of these, the last ones that were clear
};

}  // namespace freehold::doctor
