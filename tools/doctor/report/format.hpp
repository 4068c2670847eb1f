// SPDX-License-Identifier: MIT
// Figures in words, never more exact than they were measured: a value is rounded to about half of the width of its range.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/doctor/facts/experiment.hpp"
#include "tools/doctor/facts/symbols.hpp"
#include "tools/doctor/verdict/verdict.hpp"

namespace freehold::doctor::report {

// Writes a share from 0 to 1: "60% (50 to 70%)". Without a range, where it was measured once: "61%".
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

// Names the place of a frame, as short as it can be found again: "parse.cpp:210"; "parse in libparse.so" without debug
// information.
[[nodiscard]] std::string short_text(const doctor::Frame& frame);
// "a.cpp:1 and b.cpp:2"; once where both are the same.
[[nodiscard]] std::string short_text(const doctor::Frame& one, const doctor::Frame& other);

// "freehold, 2 threads", "system, 4 copies on one CPU each"
[[nodiscard]] std::string describe(const Experiment& experiment, std::size_t variant, const Setting& setting);
// "2 threads", "2 CPUs", "4 copies"
[[nodiscard]] std::string describe(const Setting& setting);
// A cause in a few words, for legends: "locks of the allocator".
[[nodiscard]] std::string_view text_of(Cause cause) noexcept;
// "Freehold", "glibc with 2 arenas (memory pools)", "jemalloc"
[[nodiscard]] std::string text_of(const Variant& variant);
// The fixes that were tried: the greatest gain first, those that failed last.
[[nodiscard]] std::vector<const Fix*> best_first(const Verdict& verdict);
// "helps", "may be chance", "the program fails"
[[nodiscard]] std::string_view judgement_of(const Fix& fix) noexcept;
// Says whether the treatment made a difference that is not chance, to the better or to the worse.
[[nodiscard]] bool is_beyond_chance(const Fix& fix) noexcept;

}  // namespace freehold::doctor::report
