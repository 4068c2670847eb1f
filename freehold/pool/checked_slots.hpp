// SPDX-License-Identifier: MIT
// A pool in checked mode (FREEHOLD_CHECK=1): every slot that is handed out or comes back is looked at. A slot lies in a raw
// one with a header, as malloc's blocks do in checked mode (check/block.hpp):
//
//   | header (32 bytes) | gap, if any | the slot, as the pool promised it | slack, at least 16 bytes |
//
// SlotRoom says how large the raw one is; it is chosen when the pool is made, and the strategy below knows only that its
// slots lie further apart. A slot that was never handed out reads as zero.
//
//   Invariant: a slot that was handed out once has a header whose mark is right, unless the program overwrote it.
//
// A pool that can asks release() which slot to give back to its strategy: the oldest one of a quarantine, first in, first
// out. Misuse ends in base::fatal(); where that returns, the operation is dropped.
//
// Any thread; one lock for the pool. Cost: the lock, a hash or two, the slot's bytes filled and compared.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "freehold/base/bits.hpp"
#include "freehold/base/check.hpp"
#include "freehold/check/block.hpp"
#include "freehold/check/leaks.hpp"
#include "freehold/check/quarantine.hpp"
#include "freehold/check/settings.hpp"
#include "freehold/pool/concept.hpp"
#include "freehold/pool/memory.hpp"
#include "freehold/pool/slots.hpp"
#include "freehold/sync/atomics.hpp"
#include "freehold/sync/lock.hpp"

namespace freehold::pool {

// Which slots are handed out, one bit each. Its atomics are native ones under the simulator, too: it is an observer.
class AllocatedSlots {
 public:
  // `slots`: 0 if no slot is looked at.
  explicit AllocatedSlots(std::size_t slots)
      : words_(slots != 0 ? ZeroedArray<Word>((slots + 63) / 64) : ZeroedArray<Word>()) {}

  void on_allocate(std::size_t slot, const void* address) const noexcept {
    const std::uint64_t mask = base::bit(slot & 63);
    if ((words_[slot >> 6].fetch_or(mask, std::memory_order_relaxed) & mask) != 0)
      base::fatal(base::HeapError::kCorruption, address);  // handed out twice
  }
  // False: it was not handed out, and the handler of fatal() returned.
  [[nodiscard]] bool on_free(std::size_t slot, const void* address) const noexcept {
    const std::uint64_t mask = base::bit(slot & 63);
    if ((words_[slot >> 6].fetch_and(~mask, std::memory_order_relaxed) & mask) != 0) return true;
    base::fatal(base::HeapError::kDoubleFree, address);
    return false;
  }

 private:
  using Word = std::atomic<std::uint64_t>;

  ZeroedArray<Word> words_;
};

class CheckedSlots {
  using Native = sync::NativeAtomics;
  using Header = check::Header<Native>;

 public:
  // Null: the slots are not looked at. `keeps`: there is a quarantine. Errors: std::bad_alloc.
  [[nodiscard]] static std::unique_ptr<CheckedSlots> make(const SlotRoom& room, const PoolShape& shape, bool keeps);
  // Errors: std::bad_alloc.
  CheckedSlots(const SlotRoom& room, const PoolShape& shape, bool keeps);
  CheckedSlots(const CheckedSlots&) = delete;
  CheckedSlots& operator=(const CheckedSlots&) = delete;

  // Held while the strategy is asked, too, so that a slot on its way between it and the quarantine is not missed.
  [[nodiscard]] sync::Mutex<Native>& lock() noexcept { return lock_; }

  // ---- Pre of all: the lock is held; `slot` is one of the pool's

  // The slot is handed out. Returns it.
  void* on_allocate(void* slot) noexcept;
  // The slot comes back. False: it may not, which was reported.
  [[nodiscard]] bool on_free(void* slot) noexcept;
  // Puts a slot that came back into the quarantine. Returns the one that leaves it; null: there is room.
  [[nodiscard]] void* keep(void* slot) noexcept;
  // Takes the oldest slot of the quarantine, for a pool that has no other free slot; null: the quarantine is empty.
  [[nodiscard]] void* take_kept() noexcept;
  // The same, null also while a quarter of it is not filled: so a slot that is freed is mostly handed out again without a
  // way through the strategy.
  [[nodiscard]] void* take_long_kept() noexcept;
  // Looks at a slot. Returns whether it is as it should be; reports what is not.
  bool look_at(void* slot) noexcept { return look_at(slot, state_of(slot)); }
  // Slots that are handed out.
  [[nodiscard]] std::size_t live() const noexcept { return live_; }

  [[nodiscard]] std::size_t kept() const noexcept { return kept_.size(); }

  // ---- all slots that were ever handed out, for which `for_each(f)` calls f, and others

  // Looks at them; returns how many are damaged. Takes the lock.
  template <class ForEach>
  std::size_t look_at_all(const ForEach& for_each) noexcept {
    const sync::Guard guard(lock_);
    std::size_t damaged = 0;
    for_each([&](void* slot) { damaged += look_at(slot) ? 0u : 1u; });
    return damaged;
  }
  // Lists those that are live, where the settings say so. Pre: no thread uses the pool.
  template <class ForEach>
  void list_live(const ForEach& for_each) const noexcept {
    if (live_ == 0 || !check::settings().leaks) return;
    os::Pages pages;
    check::LeakList leaks(pages);
    for_each([&](void* slot) {
      if (state_of(slot) == check::State::kLive) leaks.add(header_of(slot).contents());
    });
    leaks.write();
  }

 private:
  [[nodiscard]] Header& header_of(void* slot) const noexcept {
    return *reinterpret_cast<Header*>(static_cast<char*>(slot) - room_.front);
  }
  bool look_at(void* slot, check::State state) noexcept;
  [[nodiscard]] check::State state_of(void* slot) const noexcept;
  [[nodiscard]] char* gap_of(void* slot) const noexcept;
  [[nodiscard]] char* end_of(void* slot) const noexcept { return static_cast<char*>(slot) + room_.slot_bytes; }
  // Returns where the canary behind the slot ends.
  [[nodiscard]] char* guarded_end_of(void* slot) const noexcept;
  bool report(base::HeapError error, void* slot, check::State state, const char* at = nullptr) const noexcept;

  SlotRoom room_;
  std::size_t alignment_;
  check::Secret secret_;
  sync::Mutex<Native> lock_;
  std::size_t live_ = 0;
  ZeroedArray<check::Quarantine::Entry> ring_;
  check::Quarantine kept_;
};

}  // namespace freehold::pool
