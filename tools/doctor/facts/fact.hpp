// SPDX-License-Identifier: MIT
// A fact: a quantity with its limits, its unit, and where it comes from.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "tools/doctor/facts/estimate.hpp"
#include "tools/doctor/facts/experiment.hpp"

namespace freehold::doctor {

// The source of a fact: an error in one is none in the others.
enum class ToldBy : std::uint8_t { kTime, kCounts, kRecording, kSamples };

struct FactDescription {
  std::string_view name;      // "allocator-part", as in JSON
  std::string_view unit;      // "of what is lost"
  std::string_view sentence;  // what it is
  ToldBy told_by = ToldBy::kTime;
  std::optional<Treatment> needs = {};  // trials of it tell this, too; none: those of the program as it is
  bool is_evidence = true;              // else a condition, which speaks for no cause, and rules out those that lack it
};

template <class Fact, std::size_t kCount>
class FactValues {
 public:
  // None: it is not known.
  [[nodiscard]] const std::optional<Estimate>& operator[](Fact fact) const { return values_[index(fact)]; }
  void set(Fact fact, const Estimate& at) { values_[index(fact)] = at; }
  void set(Fact fact, double value) { set(fact, Estimate{value, value, value}); }
  void set(Fact fact, const std::optional<double>& value) {
    if (value) set(fact, *value);
  }

 private:
  static std::size_t index(Fact fact) { return static_cast<std::size_t>(fact); }
  std::array<std::optional<Estimate>, kCount> values_;
};

}  // namespace freehold::doctor
