// SPDX-License-Identifier: MIT
// How BestPool's slots lie in memory: in spans, as WordPool has them, so that the spans of small slots are 64 KiB long and
// a batch of addresses is grouped by word in vectors (slot_groups.hpp). Slots above 1 KiB lie one after the other, 4,096 to
// a span, and are found by a division: their use costs more than that.
//
//   Invariant: slot i of span b lies at base + b * span_bytes + i * slot_bytes; span_bytes >= slots a span * slot_bytes.
//   (In checked mode base lies behind the first slot's header, and slot_bytes is the distance of two: checked_slots.hpp.)
//   Every span is whole but the last one, which has what is left of the capacity.
//
// Immutable after construction, except the memory behind it. Any thread.
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>

#include "freehold/base/bits.hpp"
#include "freehold/base/check.hpp"
#include "freehold/base/poison.hpp"
#include "freehold/os/pages.hpp"
#include "freehold/pool/checked_slots.hpp"
#include "freehold/pool/concept.hpp"
#include "freehold/pool/memory.hpp"
#include "freehold/slots/slot_groups.hpp"
#include "freehold/slots/word_pool.hpp"

namespace freehold::pool {

class SlotLayout {
 public:
  enum class Backing : std::uint8_t { kCommitted, kReserved };

  // Errors: std::bad_alloc.
  SlotLayout(const PoolShape& shape, Backing backing)
      : slots_(shape.slots),
        room_(SlotRoom::of(shape)),
        slot_bytes_(room_.stride_bytes),
        vectors_(slot_bytes_ > 1 && slot_bytes_ <= kVectorBytes &&  // the reciprocal of 1 has 33 bits
                 shape.alignment <= kVectorBytes &&
                 (shape.memory == nullptr || std::has_single_bit(slot_bytes_))),  // else there would be gaps
        shape_{static_cast<std::uint32_t>(vectors_ ? std::min(kMaxSpanBytes / slot_bytes_, kSpanSlots) : kSpanSlots)} {
    if (slots_ > std::uint64_t{kMaxSpans} * shape_.slots || slot_bytes_ > ~std::size_t{0} / kSpanSlots / 2)
      base::out_of_memory();
    // A pool of one span needs no room behind its last slot; one of less than a word may have any number of slots in it.
    shape_.slots = static_cast<std::uint32_t>(std::min<std::size_t>(shape_.slots, slots_));
    span_bytes_ = vectors_ ? std::bit_ceil(shape_.slots * slot_bytes_) : shape_.slots * slot_bytes_;
    spans_ = base::ceil_div(slots_, shape_.slots);
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(spans_ - 1, span_bytes_, &bytes) ||
        __builtin_add_overflow(bytes, slots_in(static_cast<std::uint32_t>(spans_ - 1)) * slot_bytes_, &bytes))
      base::out_of_memory();
    if (shape.memory == nullptr)
      memory_ = backing == Backing::kCommitted ? Memory(bytes, shape.alignment, Memory::Huge::kLater)
                                               : Memory::reserved(bytes, shape.alignment, Memory::Huge::kLater);
    start_ = static_cast<std::byte*>(shape.memory != nullptr ? shape.memory : memory_.start()) + room_.front;
    bytes_ = bytes;
    geometry_ =
        SlotGeometry::of(reinterpret_cast<std::uintptr_t>(start_), static_cast<unsigned>(std::countr_zero(span_bytes_)),
                         static_cast<std::uint32_t>(vectors_ ? slot_bytes_ : kVectorBytes));
    if (backing == Backing::kCommitted) poison_new(0, bytes);
  }
  SlotLayout(const SlotLayout&) = delete;
  SlotLayout& operator=(const SlotLayout&) = delete;
  ~SlotLayout() {
    if (!room_.is_checked()) poison_.unpoison(start_, poisoned_end_);
  }

  [[nodiscard]] std::size_t slots() const noexcept { return slots_; }
  // Returns the distance from one slot to the next of its span.
  [[nodiscard]] std::size_t slot_bytes() const noexcept { return slot_bytes_; }
  // The part that the program has of it; differs in checked mode.
  [[nodiscard]] const SlotRoom& room() const noexcept { return room_; }
  [[nodiscard]] std::size_t spans() const noexcept { return spans_; }
  // Returns the shape of every span except the last, which may have fewer slots.
  [[nodiscard]] SpanShape shape() const noexcept { return shape_; }
  // Words that hold slots, over all spans.
  [[nodiscard]] std::uint32_t words() const noexcept {
    return static_cast<std::uint32_t>((spans_ - 1) * shape_.words() +
                                      base::ceil_div(slots_in(static_cast<std::uint32_t>(spans_ - 1)), 64));
  }
  // The slots of word number `word`, counted over all spans.
  [[nodiscard]] std::uint64_t full(std::uint32_t word) const noexcept {
    const std::size_t left = slots_in(word / shape_.words()) - std::size_t{word % shape_.words()} * 64;
    return base::low_bits(left < 64 ? static_cast<unsigned>(left) : 64);
  }
  [[nodiscard]] std::size_t slots_before(std::uint32_t word) const noexcept {
    return std::min(slots_, std::size_t{word / shape_.words()} * shape_.slots +
                                std::min<std::size_t>(std::size_t{word % shape_.words()} * 64, shape_.slots));
  }
  [[nodiscard]] bool is_whole(std::uint32_t span) const noexcept { return slots_in(span) == shape_.slots; }

  [[nodiscard]] void* address(WordIndex index, unsigned bit) const noexcept {
    return start_ + span_of(index) * span_bytes_ + std::size_t{word_in_span(index) * 64 + bit} * slot_bytes_;
  }
  // Writes the addresses of the slots to out, the highest first; returns their number.
  std::size_t list(Taken taken, void** out) const noexcept {
    if (vectors_) return list_slots(geometry_, taken, out);
    const auto n = static_cast<std::size_t>(std::popcount(taken.bits));
    void** at = out + n;
    for (std::uint64_t bits = taken.bits; bits != 0; bits &= bits - 1) *--at = address(taken.word, base::lowest_bit(bits));
    return n;
  }
  // Addresses to words. Pre: n <= kMaxBatch.
  void group(void* const* slots, std::size_t n, SlotGroups& out) const noexcept {
    if (vectors_) return group_slots(geometry_, slots, n, out);
    out.count = n;
    out.misplaced = out.repeated = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t slot = number(slots[i]);
      out.groups[i] = {static_cast<WordIndex>(slot / kSpanSlots << 6 | (slot % kSpanSlots) >> 6), base::bit(slot & 63)};
    }
  }

  // A slot's number among numbers(): dense within a span only.
  [[nodiscard]] std::size_t number(const void* slot) const noexcept {
    const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(slot) - start_);
    return offset / span_bytes_ * kSpanSlots + offset % span_bytes_ / slot_bytes_;
  }
  [[nodiscard]] std::size_t numbers() const noexcept { return spans_ * kSpanSlots; }
  [[nodiscard]] bool contains(const void* address) const noexcept {
    return reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(start_) < bytes_;
  }
  [[nodiscard]] bool is_slot(const void* address) const noexcept {
    if (!contains(address)) return false;
    const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(address) - start_);
    const std::size_t within = offset % span_bytes_;
    return within % slot_bytes_ == 0 && within / slot_bytes_ < slots_in(static_cast<std::uint32_t>(offset / span_bytes_));
  }

  // A slot's place in the order in which memory is opened. Pre: is_slot().
  [[nodiscard]] std::size_t ordinal(const void* slot) const noexcept {
    const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(slot) - start_);
    return offset / span_bytes_ * shape_.slots + offset % span_bytes_ / slot_bytes_;
  }

  // Makes the memory of `n` words from `word` on, all of one span, usable. False: the system has no memory.
  // Pre: called by one thread at a time, in ascending order.
  [[nodiscard]] bool commit(std::uint32_t word, std::uint32_t n) noexcept {
    const std::size_t from = offset_of(word);
    const std::size_t end = std::min(offset_of(word + n - 1) + 64 * slot_bytes_, bytes_);
    if (!memory_.commit(from, end)) return false;
    poison_new(from, std::min(end, slots_end(word)));
    return true;
  }
  // The words before `word` were opened, of which those before `former` had been: a pool that has filled its first two
  // mebibytes has huge pages for the rest, and one that has not holds what it uses.
  void opened(std::uint32_t former, std::uint32_t word) const noexcept {
    if (offset_of(former) < Memory::kHugePage && offset_of(word) >= Memory::kHugePage)
      memory_.advise_huge(Memory::kHugePage);
  }
  // Gives the whole pages of a span back to the system; returns bytes.
  [[nodiscard]] std::size_t purge(std::uint32_t span) const noexcept {
    const std::size_t page = os::page_bytes();
    const std::size_t from = base::align_up(span * span_bytes_, page);
    const std::size_t end = base::align_down(span * span_bytes_ + shape_.slots * slot_bytes_, page);
    return memory_.is_pages() && !room_.is_checked() && from < end && os::Pages::purge(start_ + from, end - from)
               ? end - from
               : 0;
  }

  [[nodiscard]] bool watched_by_memcheck() const noexcept { return poison_.memcheck(); }
  void on_allocate(const void* slot) const noexcept { poison_.on_allocate(slot, slot_bytes_); }
  void on_free(const void* slot) const noexcept { poison_.on_free(slot, slot_bytes_); }

 private:
  static constexpr std::size_t kMaxSpanBytes = 64 * 1024;
  static constexpr std::size_t kVectorBytes = 1024;               // at least 64 slots to a span
  static constexpr std::size_t kSpanSlots = 4096;                 // what a span's summary word covers
  static constexpr std::size_t kMaxSpans = std::size_t{1} << 26;  // a word index has 32 bits

  [[nodiscard]] std::size_t slots_in(std::uint32_t span) const noexcept {
    return std::min<std::size_t>(shape_.slots, slots_ - std::size_t{span} * shape_.slots);
  }
  [[nodiscard]] std::size_t offset_of(std::uint32_t word) const noexcept {
    return word / shape_.words() * span_bytes_ + std::size_t{word % shape_.words()} * 64 * slot_bytes_;
  }
  void poison_new(std::size_t from, std::size_t end) noexcept {
    if (!room_.is_checked()) poison_.poison(start_ + from, end - from);
    poisoned_end_ = end;
  }
  // Returns where the slots of the word's span end.
  [[nodiscard]] std::size_t slots_end(std::uint32_t word) const noexcept {
    const std::uint32_t span = word / shape_.words();
    return span * span_bytes_ + slots_in(span) * slot_bytes_;
  }

  std::size_t slots_;
  SlotRoom room_;
  std::size_t slot_bytes_;
  bool vectors_;
  SpanShape shape_;
  std::size_t span_bytes_ = 0;
  std::size_t spans_ = 0;
  Memory memory_;  // none if the slots lie in the caller's
  std::byte* start_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t poisoned_end_ = 0;
  SlotGeometry geometry_;
  [[no_unique_address]] base::Poison poison_;
};

}  // namespace freehold::pool
