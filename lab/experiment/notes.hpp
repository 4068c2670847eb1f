// SPDX-License-Identifier: MIT
// Notes below the figures that every experiment may need: it was interrupted, a measurement failed, sets differ widely.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace freehold::cli {

inline constexpr std::string_view kInterruptedNote = "Interrupted: only the measurements finished until then are shown.";

// "boost-pool failed in short, fresh: killed by signal 11."
[[nodiscard]] std::string failure_note(std::string_view name, std::string_view row, std::string_view why);

// Counts the medians whose sets differ by more than `limit` of the median.
class SpreadNote {
 public:
  explicit SpreadNote(double limit) : limit_(limit) {}
  // The figure of each set; none: there is no median.
  void add(std::span<const double> figures);
  [[nodiscard]] std::size_t medians() const noexcept { return medians_; }
  // Adds a sentence if there is such a median.
  void write_to(std::vector<std::string>& notes) const;

 private:
  double limit_;
  double widest_ = 0;
  std::size_t medians_ = 0;
  std::size_t wide_ = 0;
};

}  // namespace freehold::cli
