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
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "freehold/base/check.hpp"
#include "freehold/base/out_of_memory.hpp"
#include "freehold/base/poison.hpp"
#include "freehold/pool/checked_slots.hpp"
#include "freehold/pool/concept.hpp"
#include "freehold/pool/memory.hpp"

namespace freehold::pool {

// Whether each slot's coming and going is looked at: in a checked build, and under AddressSanitizer. (Whether a slot is
// poisoned does not tell that it is free: its user may have poisoned some of it.)
inline constexpr bool kChecked = base::kChecked || base::kAddressSanitizer;

// Which slots are handed out, one bit each. Its atomics are native ones under the simulator, too: it is an observer.
class AllocatedSlots {
 public:
  explicit AllocatedSlots(std::size_t slots) : words_(kChecked ? (slots + 63) / 64 : 0) {}

  void on_allocate(std::size_t slot, const void* address) const noexcept {
    if constexpr (kChecked) {
      const std::uint64_t mask = base::bit(slot & 63);
      if ((words_[slot >> 6].fetch_or(mask, std::memory_order_relaxed) & mask) != 0)
        base::fatal(base::HeapError::kCorruption, address);  // handed out twice
    }
  }
  // False: it was not handed out, and the handler of fatal() returned.
  [[nodiscard]] bool on_free(std::size_t slot, const void* address) const noexcept {
    if constexpr (kChecked) {
      const std::uint64_t mask = base::bit(slot & 63);
      if ((words_[slot >> 6].fetch_and(~mask, std::memory_order_relaxed) & mask) == 0) {
        base::fatal(base::HeapError::kDoubleFree, address);
        return false;
      }
    }
    return true;
  }

 private:
  ZeroedArray<std::atomic<std::uint64_t>> words_;
};

class Slots {
 public:
  static constexpr std::size_t kNone = ~std::size_t{0};

  // Pre: at least one slot of at least one byte, the alignment a power of two.
  // Errors: std::bad_alloc.
  explicit Slots(const PoolShape& shape)
      : count_(shape.slots),
        room_(SlotRoom::of(shape)),
        bytes_(room_.stride_bytes),
        memory_(shape.memory != nullptr ? Memory() : Memory(bytes_for(shape), shape.alignment)),
        start_(static_cast<std::byte*>(shape.memory != nullptr ? shape.memory : memory_.start()) + room_.front),
        allocated_(shape.slots),
        checked_(CheckedSlots::make(room_, shape, false)),
        poison_(checked_ != nullptr) {
    if (checked_ == nullptr) poison_.poison(start_, count_ * bytes_);
  }
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;
  ~Slots() {
    if (checked_ == nullptr) {
      poison_.unpoison(start_, count_ * bytes_);
      return;
    }
    const auto for_each = [this](auto&& f) {
      for (std::size_t slot = 0; slot < count_; ++slot) f(address(slot));
    };
    (void)checked_->look_at_all(for_each);
    checked_->list_live(for_each);
  }

  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] bool watched() const noexcept { return poison_.watched(); }

  [[nodiscard]] void* address(std::size_t slot) const noexcept { return start_ + slot * bytes_; }
  // Pre: the address of a slot.
  [[nodiscard]] std::size_t number(const void* address) const noexcept {
    return std::has_single_bit(bytes_) ? offset(address) >> std::countr_zero(bytes_) : offset(address) / bytes_;
  }
  [[nodiscard]] bool contains(const void* address) const noexcept {
    return is_inside(address) && number(address) * bytes_ == offset(address);
  }

  // The address of slot `slot`, which is the caller's from now on.
  [[nodiscard]] void* hand_out(std::size_t slot) const noexcept {
    void* const mine = address(slot);
    if constexpr (kChecked)
      if (checked_ == nullptr) allocated_.on_allocate(slot, mine);
    if (watched()) on_allocate_watched(mine);
    return mine;
  }
  // The same for a pool that keeps addresses. Returns `mine`.
  void* hand_out_at(void* mine) const noexcept {
    if constexpr (kChecked)
      if (checked_ == nullptr) allocated_.on_allocate(number(mine), mine);
    if (watched()) on_allocate_watched(mine);
    return mine;
  }
  // The number of a slot that comes back. kNone: misuse was detected and the handler of fatal() returned.
  [[nodiscard]] std::size_t take_back(const void* address) const noexcept {
    if constexpr (kChecked) {
      if (!contains(address)) {
        base::fatal(is_inside(address) ? base::HeapError::kInteriorPointer : base::HeapError::kForeignPointer, address);
        return kNone;
      }
    }
    const std::size_t slot = number(address);
    if constexpr (kChecked)
      if (checked_ == nullptr && !allocated_.on_free(slot, address)) return kNone;
    if (watched() && !on_free_watched(address)) return kNone;
    return slot;
  }

  // The same for a pool that keeps addresses. False: misuse was detected.
  [[nodiscard]] bool take_back_at(const void* address) const noexcept {
    if constexpr (kChecked) return take_back(address) != kNone;
    return !watched() || on_free_watched(address);
  }

  // Bytes that the slots of a pool need: for a caller that gives it PoolShape::memory, and says that it has room.
  // Errors: std::bad_alloc.
  static std::size_t bytes_for(const PoolShape& shape) {
    FREEHOLD_ASSERT(shape.slots > 0 && shape.slot_bytes > 0 && std::has_single_bit(shape.alignment));
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(shape.slots, SlotRoom::of(shape).stride_bytes, &bytes)) base::out_of_memory();
    return bytes;
  }

 private:
  [[nodiscard]] std::size_t offset(const void* address) const noexcept {
    return reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(start_);
  }
  [[nodiscard]] bool is_inside(const void* address) const noexcept { return offset(address) < count_ * bytes_; }

  // ---- in checked mode, and under memory checkers

  [[gnu::noinline]] void on_allocate_watched(void* mine) const noexcept {
    if (checked_ == nullptr) return poison_.on_allocate(mine, bytes_);
    const sync::Guard guard(checked_->lock());
    (void)checked_->on_allocate(mine);
  }
  // False: misuse was detected.
  [[nodiscard, gnu::noinline]] bool on_free_watched(const void* address) const noexcept {
    if (checked_ == nullptr) {
      poison_.on_free(address, bytes_);
      return true;
    }
    if (!contains(address)) {
      base::fatal(is_inside(address) ? base::HeapError::kInteriorPointer : base::HeapError::kForeignPointer, address);
      return false;
    }
    const sync::Guard guard(checked_->lock());
    return checked_->on_free(const_cast<void*>(address));
  }

  std::size_t count_;
  SlotRoom room_;
  std::size_t bytes_;  // from one slot to the next: its bytes, rounded up to the alignment; more in checked mode
  Memory memory_;      // none if another's is used
  std::byte* start_;
  AllocatedSlots allocated_;
  std::unique_ptr<CheckedSlots> checked_;  // null but in checked mode
  [[no_unique_address]] base::Poison poison_;
};

}  // namespace freehold::pool
