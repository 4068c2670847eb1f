// SPDX-License-Identifier: MIT
// A recording as whole stacks with weights, for viewers that others wrote: allocations, frees, waits, and frees by another
// thread than the one that allocated. Estimates from samples, like all that is recorded; equal stacks are one row.
// Pure. Cost: O(samples × depth).
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tools/doctor/facts/attribution.hpp"

namespace freehold::doctor {

enum class Measure : std::uint8_t {
  kAllocations,  // calls of malloc and its kin
  kBytes,        // bytes that these calls asked for
  kTime,         // nanoseconds in malloc and free, sleep included
  kFrees,        // calls of free
  kRemoteFrees,  // frees of blocks that another thread allocated; the stack is that of the free
  kLockWaits,    // nanoseconds in locks of the program's own
  kIdleness,     // nanoseconds in condition variables and semaphores
};
inline constexpr std::size_t kMeasures = 7;
[[nodiscard]] std::string_view name_of(Measure measure) noexcept;  // "allocations", "remote-frees"
[[nodiscard]] std::string_view unit_of(Measure measure) noexcept;  // "count", "bytes", "nanoseconds"

struct ProfileRow {
  std::vector<std::uint32_t> frames;       // indices into Profile::frames, innermost first
  std::array<double, kMeasures> values{};  // indexed by Measure
};

struct Profile {
  std::vector<Frame> frames;  // every frame once
  std::vector<ProfileRow> rows;
  double seconds = 0;  // duration of the longest process

  [[nodiscard]] double sum(Measure measure) const;
};

[[nodiscard]] Profile profile_of(std::span<const Evidence> processes);

}  // namespace freehold::doctor
