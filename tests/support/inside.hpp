// SPDX-License-Identifier: MIT
// Members that public classes keep from their users: invariants, and what other rooms call. A class names the Inside of its
// namespace as its friend.
#pragma once

namespace freehold::heap {
struct Inside {
  static void check_invariants(auto& heap) noexcept { heap.check_invariants(); }
  // As its registry does around a fork.
  static void lock_for_fork(auto& heap) noexcept { heap.before_fork(); }
  static void unlock_after_fork(auto& heap) noexcept { heap.after_fork(); }
  static void add_to(const auto& heap, auto& layout) noexcept { heap.add_to(layout); }
};
}  // namespace freehold::heap

namespace freehold::pool {
struct Inside {
  template <class P>
  static constexpr bool kHasInvariants = requires(const P& pool) { pool.check_invariants(); };
  [[nodiscard]] static bool check_invariants(const auto& pool) noexcept { return pool.check_invariants(); }
};
}  // namespace freehold::pool

namespace freehold::timer {
struct Inside {
  template <class T>
  static constexpr bool kHasInvariants = requires(const T& timers) { timers.check_invariants(); };
  static void check_invariants(const auto& timers) { timers.check_invariants(); }
};
}  // namespace freehold::timer
