// SPDX-License-Identifier: MIT
// Blocks on separate pages between pages that no thread may access: a use behind the end, before the beginning or after the
// free is a fault at once. The idea is GWP-ASan's: few blocks are chosen, at random, so that it can run in production.
//
//   region:   | no access | slot 0 | no access | slot 1 | no access | … | slot n-1 | no access |     a page each
//   state:    4 * stamp + phase; free -> allocating -> live -> freeing -> free. Stamps are of frees, in their order; a slot that
//             was never used has stamp 0. A slot's page may be accessed only while it is live, or about to be.
//   A block lies at its page's end or at its beginning; alignment may leave up to 15 bytes behind it. All other bytes of
//   the page are filled when it is allocated, and looked at when it is freed.
//
// The slot that has been free longest is taken, so that freed blocks stay inaccessible as long as possible. To find it, all
// states are read: 256 of them take less than the system call that opens the page. No lock: a step is one exchange of a
// state. A thread that ends during a step (in another process, after a fork) leaves its slot alone for ever.
//
// Any thread; find() also in a signal's handler: it reads a record that another thread may be changing, and looks whether
// the state has changed since. Cost: a system call for each allocation and free.
#pragma once
#include <algorithm>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "freehold/base/bits.hpp"
#include "freehold/base/check.hpp"
#include "freehold/sync/atomics.hpp"

namespace freehold::check {

template <class P>
concept GuardPages = requires(P& p, void* address, std::size_t bytes) {
  { p.commit(address, bytes) } -> std::same_as<bool>;  // reading and writing is allowed from now on
  { p.forbid(address, bytes) } -> std::same_as<bool>;  // neither is; the contents stay
};

// Names the thread that did something to a block, and the calls that led there.
struct Trace {
  static constexpr unsigned kDepth = 16;

  std::uint32_t thread = 0;  // the system's id; 0: none
  std::uint32_t depth = 0;
  void* addresses[kDepth];
};

// A copy of what is known of a block.
struct GuardedBlock {
  std::uintptr_t start = 0;
  std::size_t bytes = 0;  // 0: the slot was never used
  bool is_live = false;
  bool is_whole = false;   // false: another thread was changing the record all the time, and its parts may not fit
  Trace allocated, freed;  // traces of the slot's present or last block
};

struct GuardOrders {
  // Acquire: the page and the record are the claiming thread's now. Pairs with kPublish of the slot's former user.
  static constexpr auto kClaim = std::memory_order_acquire;
  static constexpr auto kPublish = std::memory_order_release;
  // Acquire: pairs with kPublish of the thread that allocated or freed the block; its record can be read then.
  static constexpr auto kLook = std::memory_order_acquire;
  // Fences of the sequence lock (Boehm 2012): a reader that saw a part of a new record sees the state that came before it.
  static constexpr auto kBeforeWrites = std::memory_order_release;
  static constexpr auto kAfterReads = std::memory_order_acquire;
};

template <sync::Atomics A, GuardPages Pages, class Orders = GuardOrders>
class GuardSlots {
 public:
  using State = typename A::template atomic<std::uint64_t>;
  using Word = typename A::template atomic<std::uintptr_t>;

  // The record of one slot. Written by the thread that is allocating or freeing it, read by any thread, which then looks at
  // the state.
  struct Record {
    struct TraceWords {
      Word thread, depth, addresses[Trace::kDepth];
    };
    Word start, bytes, note;
    TraceWords allocated, freed;
  };

  static constexpr std::uint8_t kFill = 0xa5;  // around a block
  static constexpr unsigned kTries = 4;        // claims that other threads may win, before an allocation is refused

  // Why a block was not freed, or which damage was seen.
  struct Verdict {
    bool is_bad = false;
    base::HeapError error{};
    const void* address = nullptr;
  };
  // Names the block that an address in the region belongs to. `is_known` is false where no block ever was.
  struct Finding {
    bool is_known = false;
    base::HeapError error{};
    GuardedBlock block;
  };

  constexpr GuardSlots() noexcept = default;

  // `region` is reserved without access, region_bytes() long; states and records are zero. All stay for ever.
  void init(Pages& pages, void* region, std::size_t page_bytes, State* states, Record* records, unsigned count) noexcept {
    pages_ = &pages;
    page_bytes_ = page_bytes;
    states_ = states;
    records_ = records;
    count_ = count;
    base_ = reinterpret_cast<std::uintptr_t>(region);
    bytes_ = region_bytes(count, page_bytes);
  }
  [[nodiscard]] static constexpr std::size_t region_bytes(unsigned count, std::size_t page_bytes) noexcept {
    return (2 * std::size_t{count} + 1) * page_bytes;
  }

  // Returns whether the address lies in the region, its inaccessible pages included. False before init().
  [[nodiscard]] bool contains(const void* address) const noexcept {
    return reinterpret_cast<std::uintptr_t>(address) - base_ < bytes_;
  }

  // A block that ends at the end of its page, as far as the alignment lets it, or begins at the beginning. `capture` is
  // called with a Trace to fill in once there is a slot. `note`: what note_of() returns. Null: `bytes` or `alignment` is
  // more than a page, all slots are in use, or the system refuses.
  template <class Capture>
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment, bool at_end, Capture capture,
                               std::uintptr_t note = 0) noexcept {
    if (bytes > page_bytes_ || alignment > page_bytes_) return nullptr;
    std::uint64_t former = 0;
    const unsigned i = claim_oldest(former);
    if (i == kNone) return nullptr;
    std::byte* const page = page_of(i);
    if (!pages_->commit(page, page_bytes_)) {
      states_[i].store(former, Orders::kPublish);
      return nullptr;
    }
    const std::size_t offset = at_end ? base::align_down(page_bytes_ - bytes, alignment) : 0;
    fill(page, offset, bytes);
    Record& record = records_[i];
    A::fence(Orders::kBeforeWrites);
    put(record.start, reinterpret_cast<std::uintptr_t>(page + offset));
    put(record.bytes, bytes);
    put(record.note, note);
    Trace trace;
    capture(trace);
    put(record.allocated, trace);
    put(record.freed.thread, 0);
    states_[i].store(with_phase(former, kLive), Orders::kPublish);
    return page + offset;
  }

  // Frees a block. A pointer to no block of a slot, or to one that is free, is bad and changes nothing. If bytes around the
  // block were written, `damaged` is called with a Verdict while they can still be read; then the block is freed. Pre:
  // contains(block).
  template <class Capture, class Damaged>
  [[nodiscard]] Verdict free(void* block, Capture capture, Damaged damaged) noexcept {
    if (const Verdict bad = verdict_on(block); bad.is_bad) return bad;
    unsigned i = 0;
    (void)slot_of(block, i);
    std::uint64_t state = states_[i].load(Orders::kLook);
    // Relaxed where it fails: another thread frees the same block.
    if (phase(state) != kLive ||
        !states_[i].compare_exchange_strong(state, with_phase(state, kFreeing), Orders::kClaim, std::memory_order_relaxed))
      return {true, base::HeapError::kDoubleFree, block};
    if (const Verdict verdict = look_around(i); verdict.is_bad) damaged(verdict);
    A::fence(Orders::kBeforeWrites);
    Trace trace;
    capture(trace);
    put(records_[i].freed, trace);
    (void)pages_->forbid(page_of(i), page_bytes_);  // refused: the page stays as it is until the slot is used again
    // Relaxed: only different numbers in about the order of the frees are wanted.
    const std::uint64_t stamp = frees_.fetch_add(1, std::memory_order_relaxed) + 1;
    states_[i].store(stamp << kPhaseBits | kFree, Orders::kPublish);
    return {};
  }

  // Tells whether a live block begins there. Pre: contains(block).
  [[nodiscard]] Verdict verdict_on(const void* block) const noexcept {
    unsigned i = 0;
    if (!slot_of(block, i)) return {true, base::HeapError::kForeignPointer, block};
    const std::uint64_t state = states_[i].load(Orders::kLook);
    if (get(records_[i].bytes) == 0) return {true, base::HeapError::kForeignPointer, block};
    if (get(records_[i].start) != reinterpret_cast<std::uintptr_t>(block))
      return {true, base::HeapError::kInteriorPointer, block};
    return {phase(state) != kLive, base::HeapError::kDoubleFree, block};
  }

  // Returns the bytes of a live block that begins there; 0: none begins there. Pre: contains(block).
  [[nodiscard]] std::size_t bytes_of(const void* block) const noexcept {
    unsigned i = 0;
    if (!slot_of(block, i) || phase(states_[i].load(Orders::kLook)) != kLive) return 0;
    return get(records_[i].start) == reinterpret_cast<std::uintptr_t>(block) ? get(records_[i].bytes) : 0;
  }

  // Returns what its allocation noted. Pre: bytes_of(block) is not 0.
  [[nodiscard]] std::uintptr_t note_of(const void* block) const noexcept {
    unsigned i = 0;
    (void)slot_of(block, i);
    return get(records_[i].note);
  }

  // Looks at the bytes around a live block. Pre: it begins there, and no thread frees it at the same time.
  [[nodiscard]] Verdict look_around(const void* block) const noexcept {
    unsigned i = 0;
    (void)slot_of(block, i);
    return look_around(i);
  }

  // Calls f(block) for each live block.
  template <class F>
  void for_each_live(F&& f) const noexcept {
    for (unsigned i = 0; i < count_; ++i)
      if (phase(states_[i].load(Orders::kLook)) == kLive) f(reinterpret_cast<const void*>(get(records_[i].start)));
  }

  // Why an access to the address was refused, and the block that it was meant for: of the blocks on both sides of a page
  // between slots, a live one rather than a free one, then the nearer one. Pre: contains(address).
  [[nodiscard]] Finding find(const void* address) const noexcept {
    Finding finding;
    unsigned i = 0;
    if (slot_of(address, i)) {
      finding.error = base::HeapError::kUseOfFreed;
      finding.is_known = copy(i, finding.block);
      return finding;
    }
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    const std::size_t gap = (at - base_) / page_bytes_ / 2;  // the slot behind it
    GuardedBlock before, behind;
    const bool has_before = gap > 0 && copy(static_cast<unsigned>(gap - 1), before);
    const bool has_behind = gap < count_ && copy(static_cast<unsigned>(gap), behind);
    if (!has_before && !has_behind) return finding;
    bool is_behind_the_end = has_before;
    if (has_before && has_behind)
      is_behind_the_end =
          before.is_live != behind.is_live ? before.is_live : at - (before.start + before.bytes) <= behind.start - at;
    finding.is_known = true;
    finding.error = is_behind_the_end ? base::HeapError::kAccessBehind : base::HeapError::kAccessBefore;
    finding.block = is_behind_the_end ? before : behind;
    return finding;
  }

  // The page of an access that was refused may be accessed from now on, and its slot is used no more: for programs that go
  // on after a report. False: the system refuses, or the slot is in use again.
  [[nodiscard]] bool forgive(const void* address) noexcept {
    unsigned i = 0;
    if (slot_of(address, i)) {
      std::uint64_t state = states_[i].load(Orders::kLook);
      if (phase(state) != kFree ||
          !states_[i].compare_exchange_strong(state, with_phase(state, kFreeing), Orders::kClaim, std::memory_order_relaxed))
        return false;
    }
    const std::uintptr_t page = base_ + base::align_down(reinterpret_cast<std::uintptr_t>(address) - base_, page_bytes_);
    return pages_->commit(reinterpret_cast<void*>(page), page_bytes_);
  }

 private:
  static constexpr unsigned kPhaseBits = 2;
  static constexpr std::uint64_t kFree = 0, kAllocating = 1, kLive = 2, kFreeing = 3, kPhaseMask = 3;
  static constexpr unsigned kNone = ~0U;
  static constexpr unsigned kReads = 8;  // reads of a record that keeps changing, at most

  [[nodiscard]] static std::uint64_t phase(std::uint64_t state) noexcept { return state & kPhaseMask; }
  [[nodiscard]] static std::uint64_t with_phase(std::uint64_t state, std::uint64_t phase) noexcept {
    return (state & ~kPhaseMask) | phase;
  }
  // Relaxed: the state's order, or the look at it afterwards, is what makes a record whole.
  [[nodiscard]] static std::uintptr_t get(const Word& word) noexcept { return word.load(std::memory_order_relaxed); }
  static void put(Word& word, std::uintptr_t value) noexcept { word.store(value, std::memory_order_relaxed); }

  static void put(typename Record::TraceWords& words, const Trace& trace) noexcept {
    put(words.thread, trace.thread);
    put(words.depth, trace.depth);
    for (unsigned i = 0; i < trace.depth; ++i) put(words.addresses[i], reinterpret_cast<std::uintptr_t>(trace.addresses[i]));
  }
  static void get(const typename Record::TraceWords& words, Trace& trace) noexcept {
    trace.thread = static_cast<std::uint32_t>(get(words.thread));
    trace.depth = std::min(static_cast<std::uint32_t>(get(words.depth)), Trace::kDepth);
    for (unsigned i = 0; i < trace.depth; ++i) trace.addresses[i] = reinterpret_cast<void*>(get(words.addresses[i]));
  }

  [[nodiscard]] std::byte* page_of(unsigned i) const noexcept {
    return reinterpret_cast<std::byte*>(base_ + (2 * std::size_t{i} + 1) * page_bytes_);
  }
  // False: the address lies in a page between slots.
  [[nodiscard]] bool slot_of(const void* address, unsigned& i) const noexcept {
    const std::size_t page = (reinterpret_cast<std::uintptr_t>(address) - base_) / page_bytes_;
    i = static_cast<unsigned>(page / 2);
    return page % 2 == 1;
  }

  // Claims the slot that has been free longest for the caller; kNone: no slot is free, or others were always faster.
  [[nodiscard]] unsigned claim_oldest(std::uint64_t& former) noexcept {
    for (unsigned tries = 0; tries < kTries; ++tries) {
      unsigned oldest = kNone;
      former = ~std::uint64_t{0};
      for (unsigned i = 0; i < count_; ++i) {
        const std::uint64_t state = states_[i].load(std::memory_order_relaxed);  // relaxed: the exchange looks again
        if (phase(state) == kFree && state < former) {
          former = state;
          oldest = i;
        }
      }
      if (oldest == kNone) return kNone;
      std::uint64_t expected = former;
      if (states_[oldest].compare_exchange_strong(expected, with_phase(former, kAllocating), Orders::kClaim,
                                                  std::memory_order_relaxed))
        return oldest;
    }
    return kNone;
  }

  void fill(std::byte* page, std::size_t offset, std::size_t bytes) const noexcept {
    std::memset(page, kFill, offset);
    std::memset(page + offset + bytes, kFill, page_bytes_ - offset - bytes);
  }

  // Which bytes around a block are not as they were filled: those nearest to it.
  [[nodiscard]] Verdict look_around(unsigned i) const noexcept {
    const auto* const page = page_of(i);
    const auto* const start = reinterpret_cast<const std::byte*>(get(records_[i].start));
    const auto is_changed = [](std::byte b) { return b != std::byte{kFill}; };
    const auto* const end = page + page_bytes_;
    const auto* const behind = std::find_if(start + get(records_[i].bytes), end, is_changed);
    if (behind != end) return {true, base::HeapError::kWriteBehind, behind};
    for (const auto* at = start; at != page;)
      if (is_changed(*--at)) return {true, base::HeapError::kWriteBefore, at};
    return {};
  }

  // False: the slot was never used.
  [[nodiscard]] bool copy(unsigned i, GuardedBlock& block) const noexcept {
    const Record& record = records_[i];
    for (unsigned reads = 0; reads < kReads; ++reads) {
      const std::uint64_t state = states_[i].load(Orders::kLook);
      block.start = get(record.start);
      block.bytes = get(record.bytes);
      block.is_live = phase(state) == kLive;
      get(record.allocated, block.allocated);
      get(record.freed, block.freed);
      A::fence(Orders::kAfterReads);
      const bool is_at_rest = phase(state) == kFree || phase(state) == kLive;
      block.is_whole = is_at_rest && states_[i].load(std::memory_order_relaxed) == state;  // relaxed: the fence ordered it
      if (block.is_whole) break;
    }
    return block.bytes != 0;
  }

  Pages* pages_ = nullptr;
  std::uintptr_t base_ = 0;
  std::size_t bytes_ = 0;  // size of the region
  std::size_t page_bytes_ = 0;
  State* states_ = nullptr;
  Record* records_ = nullptr;
  unsigned count_ = 0;
  alignas(base::kCacheLine) State frees_{0};
};

}  // namespace freehold::check
