// SPDX-License-Identifier: MIT
// The note that memory waits to be given back, and when a step of giving back looks again.
#pragma once
#include <atomic>
#include <cstdint>

#include "freehold/base/bits.hpp"
#include "freehold/sync/atomics.hpp"

namespace freehold::alloc {

// The result of a step: whether there is more to do, and when.
enum class Due : std::uint8_t {
  kNothing,
  kLater,  // more will become due, or could not be given back
  kNow,    // the step met its bound
};

// The note that something will be due, and the time of the next look. Any thread.
//
//   Invariant: whoever puts something where a look finds it, and then calls note(), leaves the note set, or a look that
//   begins with clear() comes after what was put.
template <sync::Atomics A>
class alignas(base::kCacheLine) DueNote {
 public:
  // True if memory waits to be given back, so that a look at the clock is worth while.
  [[nodiscard]] bool something() const noexcept { return something_.load(std::memory_order_relaxed); }
  // Something will be due.
  void note() noexcept {
    // seq_cst: the caller has just put something where purge_idle() finds it; either that looks after us, or we see that
    // its note was cleared.
    if (!something_.load(std::memory_order_seq_cst)) something_.store(true, std::memory_order_seq_cst);
  }
  // Call this before a look: a note that comes while we look stays. seq_cst: store buffering with note().
  void clear() noexcept { something_.store(false, std::memory_order_seq_cst); }

  // Milliseconds. Relaxed: a lost race makes a look early or late.
  [[nodiscard]] std::uint64_t next_tick() const noexcept { return next_tick_.load(std::memory_order_relaxed); }
  void set_next_tick(std::uint64_t at) noexcept { next_tick_.store(at, std::memory_order_relaxed); }
  // When pages inside spans went back last.
  [[nodiscard]] std::uint64_t swept_at() const noexcept { return swept_at_.load(std::memory_order_relaxed); }
  void note_swept(std::uint64_t at) noexcept { swept_at_.store(at, std::memory_order_relaxed); }

 private:
  typename A::template atomic<std::uint64_t> next_tick_{0}, swept_at_{0};
  typename A::template atomic<bool> something_{false};
};

}  // namespace freehold::alloc
