// SPDX-License-Identifier: MIT
// Tells a reader that takes no lock whether what it has read was changed while it read (the counter of a seqlock).
//
//   begin(); ... change ...; end();                                    // writers, one at a time
//   const auto seen = count.look(); ... read ...; count.is_still(seen) // readers: true, or read again
//
// The number is odd while a change is under way. Readers may be outside the process: they copy the number, then the data,
// then the number again. Such a copy may not fit together, so they must be able to read anything and believe nothing before
// is_still().
//
//   Invariant: a reader for which is_still() is true has read everything as it was between two changes.
//
// begin and end: externally serialised; a store each, and no read-modify-write. look and is_still: any thread, no store.
// Source: the Linux kernel's seqcount; its orders after Boehm, "Can Seqlocks Get Along with Programming Language Memory
// Models?" (2012).
#pragma once
#include <atomic>
#include <cstdint>

#include "freehold/sync/atomics.hpp"

namespace freehold::sync {

struct ChangeCountOrders {
  // release fence: the odd number becomes visible before what is stored behind it; pairs with the fence in is_still().
  static constexpr std::memory_order kBegin = std::memory_order_release;
  // release: pairs with kLook; who sees the even number sees the change.
  static constexpr std::memory_order kEnd = std::memory_order_release;
  // acquire: pairs with kEnd.
  static constexpr std::memory_order kLook = std::memory_order_acquire;
  // acquire fence: who has read a part of a change sees its odd number; pairs with the fence in begin().
  static constexpr std::memory_order kLookAgain = std::memory_order_acquire;
};

template <Atomics A, class Orders = ChangeCountOrders>
class ChangeCount {
 public:
  using Number = typename A::template atomic<std::uint64_t>;

  constexpr ChangeCount() noexcept = default;
  ChangeCount(const ChangeCount&) = delete;
  ChangeCount& operator=(const ChangeCount&) = delete;

  void begin() noexcept {
    number_.store(now() + 1, std::memory_order_relaxed);  // relaxed: the fence orders it
    A::fence(Orders::kBegin);
  }
  void end() noexcept { number_.store(now() + 1, Orders::kEnd); }
  // In a child of fork, whose parent may have been in the middle of a change by a thread that the child does not have.
  void reset() noexcept {
    if (is_amid(now())) end();
  }

  [[nodiscard]] std::uint64_t look() const noexcept { return number_.load(Orders::kLook); }
  // Returns whether nothing has changed since look(), and no change was under way then.
  [[nodiscard]] bool is_still(std::uint64_t seen) const noexcept {
    A::fence(Orders::kLookAgain);
    return !is_amid(seen) && number_.load(std::memory_order_relaxed) == seen;  // relaxed: the fence orders it
  }
  [[nodiscard]] static constexpr bool is_amid(std::uint64_t number) noexcept { return number % 2 != 0; }

  // For readers outside the process.
  [[nodiscard]] const Number& number() const noexcept { return number_; }

 private:
  [[nodiscard]] std::uint64_t now() const noexcept {
    return number_.load(std::memory_order_relaxed);
  }  // relaxed: the writer

  Number number_{0};
};

// A change for a scope.
template <class Count>
class [[nodiscard]] Change {
 public:
  explicit Change(Count& count) noexcept : count_(count) { count_.begin(); }
  ~Change() { count_.end(); }
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;

 private:
  Count& count_;
};

}  // namespace freehold::sync
