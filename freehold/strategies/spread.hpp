// SPDX-License-Identifier: MIT
// Spreads decide which of several shards a thread turns to. They are those of "Testing distributed memory pools".
//
//   S::shard(n)   0 ... n - 1, for the calling thread, now; n > 0
//
// Any thread; a spread has no state and publishes nothing. The shards are those of distributed.hpp.
#pragma once
#include <concepts>
#include <cstdint>
#include <string_view>

#include "freehold/os/rseq.hpp"
#include "freehold/sync/atomics.hpp"

namespace freehold::pool {

/// A choice among shards: `S::shard(n)` is 0 ... n - 1, for the calling thread, now.
/// @tparam S  the spread
template <class S>
concept Spread = requires(unsigned shards) {
  typename S::Atomics;
  { S::shard(shards) } noexcept -> std::same_as<unsigned>;
};

// Remainder of numbers that are mostly smaller than the divisor.
[[nodiscard]] constexpr unsigned wrap(unsigned n, unsigned shards) noexcept { return n < shards ? n : n % shards; }

/// Spreads threads in the order in which they appear, round robin: as even as the threads are equally busy.
/// Cost: a thread-local load.
/// @tparam A  the machine's atomics
template <sync::Atomics A = sync::NativeAtomics>
struct ByThread {
  /// The machine's atomics.
  using Atomics = A;
  /// @return one of `shards`.
  [[nodiscard]] static unsigned shard(unsigned shards) noexcept { return wrap(A::thread_number(), shards); }
};

/// Spreads by the system's id of the thread, hashed multiplicatively (Knuth; the factor is 2^32 by the golden ratio): a
/// thread needs no number, but several may meet in one shard while another stays empty. Cost: a thread-local load, two
/// multiplications.
/// @tparam A  the machine's atomics
template <sync::Atomics A = sync::NativeAtomics>
struct ByHash {
  /// The machine's atomics.
  using Atomics = A;
  /// @return one of `shards`.
  [[nodiscard]] static unsigned shard(unsigned shards) noexcept {
    constexpr std::uint32_t kGolden = 2654435769;
    return static_cast<unsigned>(std::uint64_t{A::thread_id() * kGolden} * shards >> 32);
  }
};

// The CPU that runs the calling thread; natively the number that the kernel keeps in the thread's rseq area, where glibc has
// registered one (0.24 ns against 0.72 for sched_getcpu()).
template <sync::Atomics A>
struct CurrentCpu {
  [[nodiscard]] static unsigned number() noexcept { return A::cpu_id(); }
};
template <>
struct CurrentCpu<sync::NativeAtomics> {
  [[nodiscard]] static unsigned number() noexcept { return os::current_cpu(); }
};

/// Spreads by the current CPU: two threads meet in a shard only if one was preempted or migrated within an operation.
/// Cost: three loads.
/// @tparam A  the machine's atomics
template <sync::Atomics A = sync::NativeAtomics>
struct ByCpu {
  /// The machine's atomics.
  using Atomics = A;
  /// @return one of `shards`.
  [[nodiscard]] static unsigned shard(unsigned shards) noexcept { return wrap(CurrentCpu<A>::number(), shards); }
};

}  // namespace freehold::pool
