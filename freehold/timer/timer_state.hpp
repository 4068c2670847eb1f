// SPDX-License-Identifier: MIT
// The state of one timer of a wheel, beside its links: its generation, whether it is armed, for which tick, and where the
// owner will look at it. A timer that is cancelled, or set to a later tick, stays linked where it is: the owner finds it
// there in time, and unlinks it or moves it on. So the hot case, set and cancel, touches this state and nothing else.
//
//   Invariant: an armed timer is linked in a slot that begins at tick `place` <= `due`, or it is posted to its owner.
//
// PlainState is for one thread; SharedState is the same for any thread beside an owner, in one word and two numbers:
//   arm      holds the word (kSetting) while it writes `due`, and posts the timer unless `place` is early enough. Only
//            another arm() of the same timer waits for it, for a handful of instructions.
//   disarm   one compare-exchange. During an arm() it leaves a mark, and that arm() ends as if it had come before.
//   end      one compare-exchange, and the timer is posted.
//   resolve  the owner, which has unlinked the node: writes the new `place`, then changes the word. A thread that read the
//            former place fails its own compare-exchange and looks again; so neither side misses what the other did.
// Every arm and resolve counts the version up, so that nothing that came and went in between is overlooked (no ABA within
// 2^27 of them).
#pragma once
#include <atomic>
#include <cstdint>
#include <optional>

#include "freehold/sync/atomics.hpp"
#include "freehold/timer/timer.hpp"

namespace freehold::timer {

using Ticks = std::uint64_t;
// The place of what is linked nowhere.
inline constexpr Ticks kNowhere = ~Ticks{0};

struct ArmResult {
  SetResult result;
  bool post;  // the caller has to post the timer to the owner
};
struct EndResult {
  bool ended;
  bool post;
};
// Tells the owner what to do with the timer: call it, link it at `place`, nothing, free its memory, look again later.
enum class Resolved : std::uint8_t { kDue, kPlaced, kIdle, kEnded, kBusy };

class PlainState {
 public:
  // A new life. Returns its generation.
  std::uint32_t begin() noexcept {
    live_ = true;
    return generation_;
  }
  [[nodiscard]] std::uint32_t generation() const noexcept { return generation_; }
  [[nodiscard]] bool is_armed() const noexcept { return armed_; }
  [[nodiscard]] bool is_posted() const noexcept { return false; }
  [[nodiscard]] Ticks due() const noexcept { return due_; }
  [[nodiscard]] Ticks place() const noexcept { return place_; }

  // The tick for which the timer is armed; none: it is not, or it is not there.
  [[nodiscard]] std::optional<Ticks> armed_for(std::uint32_t generation) const noexcept {
    return is(generation) && armed_ ? std::optional(due_) : std::nullopt;
  }

  ArmResult arm(std::uint32_t generation, Ticks due) noexcept {
    if (!is(generation)) [[unlikely]]
      return {SetResult::kNoTimer, false};
    const bool was_armed = armed_;
    armed_ = true;
    due_ = due;
    return {was_armed ? SetResult::kRearmed : SetResult::kArmed, due < place_};
  }
  bool disarm(std::uint32_t generation) noexcept {
    if (!is(generation) || !armed_) return false;
    armed_ = false;
    return true;
  }
  EndResult end(std::uint32_t generation) noexcept {
    if (!is(generation)) return {false, false};
    armed_ = live_ = false;
    place_ = kNowhere;
    if (++generation_ == 0) generation_ = 1;
    return {true, true};
  }
  // Pre: not linked. `place_of(due)` is where a timer belongs that may not fire yet, none of them kNowhere; `position` until
  // where they may.
  template <class PlaceOf>
  Resolved resolve(bool, bool may_fire, Ticks position, PlaceOf&& place_of) noexcept {
    place_ = kNowhere;
    if (!armed_) return Resolved::kIdle;
    if (may_fire && due_ <= position) {
      armed_ = false;
      return Resolved::kDue;
    }
    place_ = place_of(due_);
    return Resolved::kPlaced;
  }

 private:
  [[nodiscard]] bool is(std::uint32_t generation) const noexcept { return generation_ == generation && live_; }

  std::uint32_t generation_ = 1;
  bool live_ = false;
  bool armed_ = false;
  Ticks due_ = 0;
  Ticks place_ = kNowhere;
};

struct TimerOrders {
  // acquire: pairs with resolve (the place that goes with this word) and, for a thread that will post the timer, with the
  // resolve after which the link of the mailbox is free again. For disarm and end: a thread that finds the timer called
  // knows that the call has begun, and can wait for its end (driver.hpp).
  static constexpr std::memory_order kLook = std::memory_order_acquire;
  // release: pairs with kOwnerLook; publishes the due tick, and what the caller did before, to the callback.
  static constexpr std::memory_order kArm = std::memory_order_release;
  // acquire: pairs with arm, by which the due tick is there.
  static constexpr std::memory_order kOwnerLook = std::memory_order_acquire;
  // release: pairs with kLook; publishes the place, and that the link of the mailbox was read.
  static constexpr std::memory_order kResolve = std::memory_order_release;
  // release: pairs with kReadDue; a due tick is not seen before the word that says that it is being set.
  static constexpr std::memory_order kWriteDue = std::memory_order_release;
  // acquire: pairs with kWriteDue, so that armed_for() looks at a word that is as new as the tick.
  static constexpr std::memory_order kReadDue = std::memory_order_acquire;
};

template <sync::Atomics A, class Orders = TimerOrders>
class SharedState {
 public:
  // Pre: no other thread knows of this life yet; the owner gave the former one back.
  std::uint32_t begin() noexcept {
    // relaxed, both: the handle travels by the caller's means, and the node's memory came through the slab's lock.
    const std::uint64_t word = word_.load(std::memory_order_relaxed);
    word_.store(word & ~kDead, std::memory_order_relaxed);
    return generation_of(word);
  }
  // The owner, for which only the flags of others can change.
  [[nodiscard]] std::uint32_t generation() const noexcept { return generation_of(word_.load(std::memory_order_relaxed)); }
  // Answers as the owner sees it now; an arm() that is under way posts the timer later.
  [[nodiscard]] bool is_armed() const noexcept {
    const std::uint64_t word = word_.load(Orders::kOwnerLook);
    return (word & (kArmed | kSetting)) == kArmed;
  }
  [[nodiscard]] bool is_posted() const noexcept {
    return (word_.load(std::memory_order_relaxed) & (kPosted | kSetting)) != 0;
  }
  [[nodiscard]] Ticks due() const noexcept { return due_.load(std::memory_order_relaxed); }
  [[nodiscard]] Ticks place() const noexcept { return place_.load(std::memory_order_relaxed); }

  ArmResult arm(std::uint32_t generation, Ticks due) noexcept {
    std::uint64_t word = word_.load(Orders::kLook);
    for (;;) {
      if (!is(word, generation)) return {SetResult::kNoTimer, false};
      if ((word & kSetting) != 0) {
        word = once_set();
      } else if (word_.compare_exchange_weak(word, (word | kSetting) & ~kArmed, Orders::kLook, Orders::kLook)) {
        break;
      }
    }
    const bool was_armed = (word & kArmed) != 0;
    word = (word | kSetting) & ~kArmed;
    due_.store(due, Orders::kWriteDue);  // for the owner kArm publishes it; only the thread that holds the word writes it
    for (;;) {
      bool post = false;
      std::uint64_t next = word & ~(kSetting | kCancelled);
      if (!is(word, generation)) {
        // It was destroyed since.
      } else if ((word & kCancelled) == 0) {
        // relaxed: not older than the word, which was acquired; if it is newer, the owner's resolve fails or we do.
        post = due < place_.load(std::memory_order_relaxed);
        next = counted_up(next) | kArmed | (post ? kPosted : 0);
      }
      if (word_.compare_exchange_weak(word, next, Orders::kArm, Orders::kLook)) {
        if (!is(next, generation)) return {SetResult::kNoTimer, false};
        return {was_armed ? SetResult::kRearmed : SetResult::kArmed, post && (word & kPosted) == 0};
      }
    }
  }

  // As PlainState's. Any thread; waits for an arm() that is under way, which is a handful of instructions.
  [[nodiscard]] std::optional<Ticks> armed_for(std::uint32_t generation) const noexcept {
    for (;;) {
      const std::uint64_t word = once_set();
      if (!is(word, generation)) return std::nullopt;
      if ((word & kArmed) == 0) return std::nullopt;
      const Ticks due = due_.load(Orders::kReadDue);
      // relaxed: not older than the tick, which was acquired. The same word: the tick is its own, and of this life.
      if (word_.load(std::memory_order_relaxed) == word) return due;
    }
  }

  bool disarm(std::uint32_t generation) noexcept {
    std::uint64_t word = word_.load(Orders::kLook);
    for (;;) {
      if (!is(word, generation)) return false;
      std::uint64_t next = word & ~kArmed;
      if ((word & (kSetting | kCancelled)) == kSetting)
        next = word | kCancelled;
      else if ((word & kArmed) == 0)
        return false;
      if (word_.compare_exchange_weak(word, next, Orders::kLook, Orders::kLook)) return true;
    }
  }

  EndResult end(std::uint32_t generation) noexcept {
    std::uint64_t word = word_.load(Orders::kLook);
    for (;;) {
      if (!is(word, generation)) return {false, false};
      const std::uint64_t next = (word & ~kArmed) | kDead;
      // Releases nothing: the mailbox publishes what the owner needs.
      if (word_.compare_exchange_weak(word, next, Orders::kLook, Orders::kLook)) return {true, (word & kPosted) == 0};
    }
  }

  // The owner. `from_mailbox`: the node was taken from the mailbox, and may come there again.
  template <class PlaceOf>
  Resolved resolve(bool from_mailbox, bool may_fire, Ticks position, PlaceOf&& place_of) noexcept {
    std::uint64_t word = word_.load(Orders::kOwnerLook);
    for (;;) {
      if ((word & kDead) != 0 && from_mailbox) {
        if ((word & kSetting) != 0) return Resolved::kBusy;  // an arm() has not noticed yet; it stays posted
        next_life(word);
        return Resolved::kEnded;
      }
      std::uint64_t next = counted_up(from_mailbox ? word & ~kPosted : word);
      Ticks place = kNowhere;
      Resolved found = Resolved::kIdle;
      // While it is being set, arm() will fail to change the word, find it nowhere, and post it.
      if ((word & (kArmed | kSetting)) == kArmed) {
        // relaxed: published by the arm whose word we saw; a later one makes us look again.
        const Ticks due = due_.load(std::memory_order_relaxed);
        found = may_fire && due <= position ? Resolved::kDue : Resolved::kPlaced;
        if (found == Resolved::kDue)
          next &= ~kArmed;
        else
          place = place_of(due);
      }
      place_.store(place, std::memory_order_relaxed);  // relaxed: kResolve publishes it
      if (word_.compare_exchange_weak(word, next, Orders::kResolve, Orders::kOwnerLook)) return found;
    }
  }

 private:
  // {generation: 32, version: 27, flags: 5}
  static constexpr std::uint64_t kArmed = 1;      // fires at due_, unless something else comes first
  static constexpr std::uint64_t kSetting = 2;    // an arm() holds the word
  static constexpr std::uint64_t kCancelled = 4;  // that arm() was cancelled
  static constexpr std::uint64_t kPosted = 8;     // in the owner's mailbox, or about to be; of a dead timer it says nothing
  static constexpr std::uint64_t kDead = 16;      // destroyed, or not created
  static constexpr unsigned kVersionShift = 5, kGenerationShift = 32;
  static constexpr std::uint64_t kVersionMask = ((std::uint64_t{1} << 27) - 1) << kVersionShift;

  // The word when no arm() holds it. Naps in the end: a real-time thread may keep the one that does from running.
  [[nodiscard]] std::uint64_t once_set() const noexcept {
    std::uint64_t word = 0;
    sync::wait_until<A>([&] { return ((word = word_.load(Orders::kLook)) & kSetting) == 0; });
    return word;
  }
  [[nodiscard]] static std::uint32_t generation_of(std::uint64_t word) noexcept {
    return static_cast<std::uint32_t>(word >> kGenerationShift);
  }
  [[nodiscard]] static bool is(std::uint64_t word, std::uint32_t generation) noexcept {
    return generation_of(word) == generation && (word & kDead) == 0;
  }
  [[nodiscard]] static std::uint64_t counted_up(std::uint64_t word) noexcept {
    return (word & ~kVersionMask) | ((word + (std::uint64_t{1} << kVersionShift)) & kVersionMask);
  }
  // Pre: dead, and no thread holds it: then only reads and failing compare-exchanges of others can come.
  void next_life(std::uint64_t word) noexcept {
    place_.store(kNowhere, std::memory_order_relaxed);
    const std::uint32_t next = generation_of(word) + 1;
    word_.store(std::uint64_t{next == 0 ? 1 : next} << kGenerationShift | kDead, std::memory_order_relaxed);
  }

  typename A::template atomic<std::uint64_t> word_{std::uint64_t{1} << kGenerationShift | kDead};
  typename A::template atomic<Ticks> due_{0};
  typename A::template atomic<Ticks> place_{kNowhere};
};

}  // namespace freehold::timer
