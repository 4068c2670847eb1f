// SPDX-License-Identifier: MIT
// Durations of the public interface as the nanoseconds that the task table and its clock use. Any thread.
#pragma once
#include <algorithm>
#include <cstdint>

#include "freehold/process/process_info.hpp"
#include "freehold/process/task.hpp"
#include "freehold/sync/atomics.hpp"

namespace freehold::process {

// 0 and kNoLimit mean no limit.
[[nodiscard]] constexpr std::uint64_t nanoseconds_of(Nanoseconds time) noexcept {
  return time == kNoLimit ? 0 : static_cast<std::uint64_t>(std::max<std::int64_t>(time.count(), 0));
}
// When a wait of so long ends; kForever if never.
[[nodiscard]] inline std::uint64_t deadline_of(Nanoseconds time) noexcept {
  return time == kNoLimit ? sync::kForever : now() + nanoseconds_of(time);
}
// How long it is until then; kForever if for ever, 0 if it is past.
[[nodiscard]] inline std::uint64_t left_until(std::uint64_t end) noexcept {
  if (end == sync::kForever) return sync::kForever;
  const std::uint64_t time = now();
  return time < end ? end - time : 0;
}

}  // namespace freehold::process
