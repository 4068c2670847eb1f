// SPDX-License-Identifier: MIT
// One misuse that a round plants: what is done, to which block, and which report it must end in. The plan is made before
// fork(), so that parent and child agree on it; the child commits it.
#pragma once
#include <string>

#include "tests/fuzz/checked/worker.hpp"

namespace freehold::fuzz {

// Moments at which damage to a block's surroundings, or to a freed block, is looked for.
enum class Moment : std::uint8_t { kFree, kRealloc, kExit, kDemand };

struct Plan {
  const char* name = "";
  void (*commit)(const Plan&) = nullptr;
  Block block;
  Block second;  // the same as the child takes it for, if that is the misuse; the parent frees it then
  std::size_t offset = 0, count = 0;
  Moment moment = Moment::kFree;
  bool sized = false;
  unsigned char flip = 1;  // bits that a damaged byte changes
  // The report: one of these texts, at an address in [first, last].
  const char* texts[3] = {};
  std::uintptr_t first = 0, last = 0;

  [[nodiscard]] std::string describe() const;
};

// A misuse that the settings must report, with a block of `worker`.
Plan plan_misuse(Worker& worker, const Settings& settings);

// Returns an empty text if what a child has written is the report of the plan; else what is wrong.
std::string judge(const Plan& plan, const Settings& settings, const std::string& text, int wait_status);

}  // namespace freehold::fuzz
