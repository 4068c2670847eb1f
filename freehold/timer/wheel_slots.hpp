// SPDX-License-Identifier: MIT
// The slots of a hierarchical timing wheel (Varghese and Lauck 1987), found by a bitmap of used slots per level. A tick is
// read as digits of six bits. A timer that is due at a later tick than the wheel's position stands on the level of the
// highest digit in which the two differ, in the slot of its digit there. So all on one level are due before all on the next
// one, a slot of level n covers 64^n ticks, and eleven levels cover every tick there can be. The earliest slot is the lowest
// used bit of the lowest used level: two instructions, whatever the number of timers.
//
//   Invariant: a slot's bit is set if and only if its list is not empty, a level's if any of its slots' is; a node of
//   slot s says s; next and prev agree. Every used slot begins after the position, but one that is being emptied.
//
// Two lists more belong to no tick: of timers that are due already. Nodes are linked by index.
// Threads: the owner.
#pragma once
#include <array>
#include <cstdint>

#include "freehold/base/bits.hpp"
#include "freehold/base/check.hpp"
#include "freehold/timer/node_array.hpp"
#include "freehold/timer/timer_state.hpp"

namespace freehold::timer {

// The slot of a timer, and the first tick of it.
struct WheelPlace {
  std::uint16_t slot;
  Ticks start;
};

// `Nodes` is an array of nodes whose `link` is a WheelLink.
struct WheelLink {
  static constexpr std::uint16_t kUnlinked = 0xffff;
  std::uint32_t next = kNoNode;
  std::uint32_t prev = kNoNode;  // kNoNode: it is the first
  std::uint16_t slot = kUnlinked;

  [[nodiscard]] bool is_linked() const noexcept { return slot != kUnlinked; }
};

template <class Nodes>
class WheelSlots {
 public:
  static constexpr unsigned kDigitBits = 6, kSlotsPerLevel = 1u << kDigitBits;
  static constexpr unsigned kLevels = (64 + kDigitBits - 1) / kDigitBits;
  static constexpr std::uint16_t kDueLists[2] = {kLevels * kSlotsPerLevel, kLevels* kSlotsPerLevel + 1};
  static constexpr unsigned kLists = kLevels * kSlotsPerLevel + 2;

  explicit WheelSlots(Nodes& nodes) noexcept : nodes_(nodes) { heads_.fill(kNoNode); }

  // Pre: due > position.
  [[nodiscard]] static WheelPlace place_of(Ticks due, Ticks position) noexcept {
    FREEHOLD_ASSERT(due > position);
    const unsigned level = (63 - static_cast<unsigned>(std::countl_zero(due ^ position))) / kDigitBits;
    const unsigned shift = level * kDigitBits;
    const auto digit = static_cast<unsigned>(due >> shift) % kSlotsPerLevel;
    return {static_cast<std::uint16_t>(level * kSlotsPerLevel + digit), due >> shift << shift};
  }
  // Slots that cover one tick: all in them is due at once.
  [[nodiscard]] static bool is_one_tick(std::uint16_t slot) noexcept { return slot < kSlotsPerLevel; }

  // The earliest used slot. Pre: any().
  [[nodiscard]] WheelPlace first(Ticks position) const noexcept {
    const unsigned level = base::lowest_bit(used_levels_);
    const unsigned digit = base::lowest_bit(used_[level]);
    const unsigned shift = level * kDigitBits;
    // The digits above the level's are the position's.
    const Ticks above = shift + kDigitBits < 64 ? position >> (shift + kDigitBits) << (shift + kDigitBits) : 0;
    return {static_cast<std::uint16_t>(level * kSlotsPerLevel + digit), above | Ticks{digit} << shift};
  }
  [[nodiscard]] bool any() const noexcept { return used_levels_ != 0; }
  [[nodiscard]] bool empty(std::uint16_t list) const noexcept { return heads_[list] == kNoNode; }
  // kNoNode when it is empty.
  [[nodiscard]] std::uint32_t head(std::uint16_t list) const noexcept { return heads_[list]; }

  void link(std::uint32_t index, std::uint16_t list) noexcept {
    WheelLink& link = nodes_[index].link;
    FREEHOLD_ASSERT(!link.is_linked());
    const std::uint32_t head = heads_[list];
    link = {head, kNoNode, list};
    heads_[list] = index;
    if (head != kNoNode)
      nodes_[head].link.prev = index;
    else if (list < kDueLists[0])
      mark(list);
  }

  void unlink(std::uint32_t index) noexcept {
    WheelLink& link = nodes_[index].link;
    FREEHOLD_ASSERT(link.is_linked());
    if (link.next != kNoNode) nodes_[link.next].link.prev = link.prev;
    if (link.prev != kNoNode) {
      nodes_[link.prev].link.next = link.next;
    } else {
      heads_[link.slot] = link.next;
      if (link.next == kNoNode && link.slot < kDueLists[0]) unmark(link.slot);
    }
    link.slot = WheelLink::kUnlinked;
  }

  // The invariant; calls check(index, slot) for every node. Cost: O(n).
  template <class F>
  void check_invariants(F&& check) const {
    for (std::uint16_t list = 0; list < kLists; ++list) {
      const unsigned level = list / kSlotsPerLevel, digit = list % kSlotsPerLevel;
      if (level < kLevels) FREEHOLD_ASSERT(empty(list) == ((used_[level] & base::bit(digit)) == 0));
      std::uint32_t prev = kNoNode;
      for (std::uint32_t i = heads_[list]; i != kNoNode; prev = i, i = nodes_[i].link.next) {
        FREEHOLD_ASSERT(nodes_[i].link.slot == list && nodes_[i].link.prev == prev);
        check(i, list);
      }
    }
    for (unsigned level = 0; level < kLevels; ++level)
      FREEHOLD_ASSERT((used_[level] != 0) == ((used_levels_ & base::bit(level)) != 0));
  }

 private:
  void mark(std::uint16_t slot) noexcept {
    const unsigned level = slot / kSlotsPerLevel;
    used_[level] |= base::bit(slot % kSlotsPerLevel);
    used_levels_ |= base::bit(level);
  }
  void unmark(std::uint16_t slot) noexcept {
    const unsigned level = slot / kSlotsPerLevel;
    used_[level] &= ~base::bit(slot % kSlotsPerLevel);
    if (used_[level] == 0) used_levels_ &= ~base::bit(level);
  }

  Nodes& nodes_;
  std::uint64_t used_levels_ = 0;
  std::array<std::uint64_t, kLevels> used_{};
  std::array<std::uint32_t, kLists> heads_;
};

}  // namespace freehold::timer
