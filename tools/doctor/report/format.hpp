// SPDX-License-Identifier: MIT
// Figures in words, never more exact than they were measured: a value is rounded to about half of the width of its range.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "tools/doctor/facts/symbols.hpp"
#include "tools/doctor/verdict/verdict.hpp"

namespace freehold::doctor::report {

// Of 0 to 1: "60% (50 to 70%)". Without a range, where it was measured once: "61%".
[[nodiscard]] std::string percent_text(const doctor::Estimate& share);
[[nodiscard]] std::string percent_text(double share);
// The value alone, rounded as its range demands: "60%".
[[nodiscard]] std::string percent_value_text(const doctor::Estimate& share);
// "1.9 times (1.8 to 2.0)"; "1.93 times (1.91 to 1.94)"
[[nodiscard]] std::string times_text(const doctor::Estimate& ratio);
// The same without words: "1.9", "1.8–2.0" (empty: no range).
[[nodiscard]] std::string value_text(const doctor::Estimate& ratio);
[[nodiscard]] std::string range_text(const doctor::Estimate& ratio);
// "1.24 s", "83 ms", "12 µs"
[[nodiscard]] std::string seconds_text(double seconds);
// "12", "3,400", "1.2 million"
[[nodiscard]] std::string count_text(double count);
// "2 CPUs", "1 thread"
[[nodiscard]] std::string counted(std::uint64_t n, std::string_view thing);

// Where a frame is, as short as it can be found again: "parse.cpp:210"; "parse in libparse.so" without debug information.
[[nodiscard]] std::string short_text(const doctor::Frame& frame);
// "a.cpp:1 and b.cpp:2"; once where both are the same.
[[nodiscard]] std::string short_text(const doctor::Frame& one, const doctor::Frame& other);

}  // namespace freehold::doctor::report
