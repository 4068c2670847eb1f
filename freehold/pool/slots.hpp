// SPDX-License-Identifier: MIT
// The memory of a pool's slots: one array, addresses to numbers and back, and the marks for memory checkers.
//
//   Invariant: slot i lies at start + i * bytes, i < count; it is unpoisoned while it is handed out.
//
// In checked mode (FREEHOLD_CHECK=1) each slot's coming and going is looked at (checked_slots.hpp); slots lie further apart
// then. In a checked build (FREEHOLD_CHECKED) a bit for each slot says whether it is handed out, so that a second release,
// or an address at which no slot begins, ends in fatal() always, not by luck. Any thread. hand_out, take_back: a
// multiplication each (a division where the size is no power of two), no shared line written but in a checked build.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>

#include "freehold/base/asan.hpp"
#include "freehold/base/check.hpp"
#include "freehold/pool/concept.hpp"
#include "freehold/pool/memory.hpp"

namespace freehold::pool {

// Says where a slot lies in its raw slot (checked_slots.hpp).
struct SlotRoom {
  std::size_t front = 0;         // bytes before it; 0: it is not looked at, and the raw slot is the slot
  std::size_t slot_bytes = 0;    // bytes of the slot, rounded up to its alignment
  std::size_t stride_bytes = 0;  // bytes of the raw slot

  [[nodiscard]] static SlotRoom of(const PoolShape& shape) noexcept;
  [[nodiscard]] bool is_checked() const noexcept { return front != 0; }
};

// Each acquire and release is checked: in a checked build, and under AddressSanitizer. (Whether a slot is poisoned does not
// tell that it is free: its user may have poisoned some of it.)
inline constexpr bool kChecked = base::kChecked || base::kAddressSanitizer;

class Slots {
 public:
  static constexpr std::size_t kNone = ~std::size_t{0};

  // Pre: at least one slot of at least one byte, the alignment a power of two.
  // Errors: std::bad_alloc.
  explicit Slots(const PoolShape& shape) : Slots(shape, SlotRoom::of(shape)) {}
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;
  ~Slots() {
    if (poisons_) base::asan_unpoison(start_, count_ * bytes_);
    if (looks_ != nullptr) end_looks();
  }

  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] bool watched() const noexcept { return base::kAddressSanitizer || looks_ != nullptr; }

  [[nodiscard]] void* address(std::size_t slot) const noexcept { return start_ + slot * bytes_; }
  // Pre: the address of a slot.
  [[nodiscard]] std::size_t number(const void* address) const noexcept {
    return std::has_single_bit(bytes_) ? offset(address) >> std::countr_zero(bytes_) : offset(address) / bytes_;
  }
  [[nodiscard]] bool contains(const void* address) const noexcept {
    return is_inside(address) && number(address) * bytes_ == offset(address);
  }

  // The address of slot `slot`, which is the caller's from now on.
  [[nodiscard]] void* hand_out(std::size_t slot) const noexcept { return hand_out_at(address(slot)); }
  // The same for a pool that keeps addresses. Returns `mine`.
  void* hand_out_at(void* mine) const noexcept {
    if (watched()) on_allocate_watched(mine);
    return mine;
  }
  // The number of a slot that comes back. kNone: misuse was detected and the handler of fatal() returned.
  [[nodiscard]] std::size_t take_back(const void* address) const noexcept {
    return take_back_at(address) ? number(address) : kNone;
  }
  // The same for a pool that keeps addresses. False: misuse was detected.
  [[nodiscard]] bool take_back_at(const void* address) const noexcept { return !watched() || on_free_watched(address); }

  // Bytes that the slots of a pool need: for a caller that gives it PoolShape::memory, and says that it has room.
  // Errors: std::bad_alloc.
  static std::size_t bytes_for(const PoolShape& shape) {
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(shape.slots, SlotRoom::of(shape).stride_bytes, &bytes)) base::out_of_memory();
    return bytes;
  }

 private:
  struct Looks;

  Slots(const PoolShape& shape, const SlotRoom& room)
      : count_(shape.slots),
        bytes_(room.stride_bytes),
        memory_(shape.memory != nullptr ? Memory() : Memory(bytes_for(shape), shape.alignment)),
        start_(static_cast<std::byte*>(shape.memory != nullptr ? shape.memory : memory_.start()) + room.front),
        poisons_(!room.is_checked()) {
    begin_looks(room, shape, kChecked);
    if (poisons_) base::asan_poison(start_, count_ * bytes_);
  }

  [[nodiscard]] std::size_t offset(const void* address) const noexcept {
    return reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(start_);
  }
  [[nodiscard]] bool is_inside(const void* address) const noexcept { return offset(address) < count_ * bytes_; }

  // ---- in checked mode and checked builds, and under memory checkers

  [[gnu::noinline]] void on_allocate_watched(void* mine) const noexcept {
    if (poisons_) base::asan_unpoison(mine, bytes_);
    if (looks_ != nullptr) look_at_allocated(mine);
  }
  // False: misuse was detected.
  [[nodiscard, gnu::noinline]] bool on_free_watched(const void* address) const noexcept {
    if (looks_ != nullptr && !look_at_freed(address)) return false;
    if (poisons_) base::asan_poison(address, bytes_);
    return true;
  }
  // `each`: also in a program that does not run in checked mode. Errors: std::bad_alloc.
  void begin_looks(const SlotRoom& room, const PoolShape& shape, bool each);
  void end_looks() noexcept;
  void look_at_allocated(void* mine) const noexcept;
  [[nodiscard]] bool look_at_freed(const void* address) const noexcept;

  std::size_t count_;
  std::size_t bytes_;  // from one slot to the next: its bytes, rounded up to the alignment; more in checked mode
  Memory memory_;      // none if another's is used
  std::byte* start_;
  Looks* looks_ = nullptr;  // null: only AddressSanitizer looks
  bool poisons_;            // not in checked mode, whose headers lie between the slots
};

}  // namespace freehold::pool
