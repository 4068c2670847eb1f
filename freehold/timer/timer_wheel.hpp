// SPDX-License-Identifier: MIT
// A hierarchical timing wheel: set and cancel in O(1), whatever the number of timers and however far their times.
//
//   freehold::TimerWheel<> timers;                       // for one thread; TimerWheel<timer::AnyThread> for several
//   const auto id = timers.create([&] { connection.ping(); });
//   timers.set_after(id, 30s);
//   timers.advance(timer::Clock::now());
//
// Times are rounded up to ticks; a timer fires at the first advance() whose `now` is in its tick or after. Slots begin at
// ticks (wheel_slots.hpp). advance() goes from used slot to used slot, not from tick to tick. It calls the timers that are
// due in each, and moves the others to lower levels, which cover fewer ticks: at most ten moves in a timer's life.
// Cancelled and postponed timers stay linked until their slot comes (timer_state.hpp), so that the hot case, set and cancel
// again and again, touches one line, the timer's own.
//
//   Invariant: that of WheelSlots and of the timers' states; position_ <= target_, the tick of the latest `now`; no armed
//   timer is linked in a slot that begins before the position, except the slot that is being emptied and the due lists.
//
// Threads: by the policy. SingleThreaded: one at a time, no atomics. AnyThread: the owner is the thread that calls advance()
// and next_expiry(), one thread at a time; create, set, cancel and destroy from any thread, callbacks included. cancel() is
// lock-free: a compare-exchange on the timer's own line. set() and destroy() post the timer to the owner's mailbox, unless
// it is there or will be looked at in time. They never wait for the owner; a set() waits for another set() of the same
// timer. create() takes a lock of a few instructions. A destroyed timer's memory can be used again after the next advance().
// The callback sees everything that a thread did before its set(). Waking the owner is the driver's part (driver.hpp). Cost:
// all O(1), next_expiry() and the slots of an advance() too. Memory: one line of 64 bytes a timer, 3 KiB a wheel. Errors:
// the constructor throws std::bad_alloc when there is no address space.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>

#include "freehold/base/bits.hpp"
#include "freehold/base/check.hpp"
#include "freehold/timer/locking.hpp"
#include "freehold/timer/node_array.hpp"
#include "freehold/timer/tick_clock.hpp"
#include "freehold/timer/timer.hpp"
#include "freehold/timer/timer_state.hpp"
#include "freehold/timer/wheel_slots.hpp"

namespace freehold::timer {

struct WheelOrders : TimerOrders {
  // release: pairs with kTake; publishes the link to the one below.
  static constexpr std::memory_order kPost = std::memory_order_release;
  // acquire: pairs with every kPost of the timers that it takes.
  static constexpr std::memory_order kTake = std::memory_order_acquire;
};

/// The class behind TimerWheel.
/// @tparam Locking  SingleThreaded, or AnyThread
/// @tparam Tick     the unit of time that the wheel knows
/// @tparam Orders   memory orders, which the model tests weaken
template <class Locking, class Tick, class Orders>
class BasicTimerWheel {
  using Time = TickClock<Tick>;

 public:
  /// The unit of time that the wheel knows.
  using TickDuration = Tick;
  /// Says whether several threads may use it; see SharedTimers.
  static constexpr bool kShared = Locking::kShared;
  /// Says whether the memory of a destroyed timer can be used again after the next advance() only.
  static constexpr bool kReclaimsInAdvance = Locking::kShared;

  /// A wheel without timers.
  /// @param max_timers  the most timers at a time; their address space is reserved
  /// Errors: std::bad_alloc when there is no address space.
  explicit BasicTimerWheel(std::size_t max_timers = kDefaultTimers) : nodes_(max_timers), slots_(nodes_) {}
  BasicTimerWheel(const BasicTimerWheel&) = delete;
  BasicTimerWheel& operator=(const BasicTimerWheel&) = delete;

  /// Creates a timer that is not armed.
  /// @param callback  is called by advance() when the timer's time has come; see Callback
  /// @return its handle; none if there is no memory or no room.
  [[nodiscard]] TimerId create(Callback callback) noexcept {
    const std::uint32_t index = nodes_.allocate();
    if (index == kNoNode) [[unlikely]]
      return {};
    Node& node = nodes_[index];
    node.callback.store(callback);
    return TimerId(index, node.state.begin());
  }

  /// Arms a timer, or arms it again.
  /// @param id    the timer
  /// @param time  when it fires
  /// @return see SetResult.
  SetResult set(TimerId id, TimePoint time) noexcept {
    Node* const node = find(id);
    if (node == nullptr) [[unlikely]]
      return SetResult::kNoTimer;
    const Ticks due = Time::tick_after(time);
    const ArmResult armed = node->state.arm(id.generation(), due);
    if constexpr (Locking::kShared) {
      if (armed.post) post(*node, id.index());
    } else {
      // In a callback, the slot in which it is linked may come in this very call, which may have called the timer already.
      if (armed.post || (due <= target_ && is_set(armed.result))) link_earlier(*node, id.index());
    }
    return armed.result;
  }

  /// Disarms a timer.
  /// @param id  the timer
  /// @return whether it was armed and will not fire.
  bool cancel(TimerId id) noexcept {
    Node* const node = find(id);
    return node != nullptr && node->state.disarm(id.generation());
  }

  /// Ends a timer, armed or not, also from its own callback.
  /// @param id  the timer
  /// @return whether it was there. Another thread's callback may still run.
  bool destroy(TimerId id) noexcept {
    Node* const node = find(id);
    if (node == nullptr) return false;
    const EndResult end = node->state.end(id.generation());
    if (end.post) {
      if constexpr (Locking::kShared) {
        post(*node, id.index());
      } else {
        if (node->link.is_linked()) slots_.unlink(id.index());
        nodes_.free(id.index());
      }
    }
    return end.ended;
  }

  /// The end of the tick that an armed timer was set to; waits for a set() of the same timer that is under way.
  /// @param id  the timer
  /// @return the time; none: the timer is not armed, or not there. Threads: any.
  [[nodiscard]] std::optional<TimePoint> expiry(TimerId id) const noexcept {
    const Node* const node = find(id);
    if (node == nullptr) return std::nullopt;
    const std::optional<Ticks> due = node->state.armed_for(id.generation());
    return due ? std::optional(Time::time_of(*due)) : std::nullopt;
  }
  /// A snapshot; see TimerStats. Threads: any. Cost: the lock of create().
  [[nodiscard]] TimerStats stats() const noexcept {
    return {nodes_.allocated(), nodes_.used(), fired_.load(std::memory_order_relaxed)};  // relaxed: a statistic
  }
  /// The end of the tick of the latest `now` that advance() was given. Threads: the owner.
  [[nodiscard]] TimePoint now() const noexcept { return Time::time_of(target_); }

  /// Arms a timer.
  /// @param id     the timer
  /// @param delay  how long from now; any unit of std::chrono
  template <class Rep, class Period>
  SetResult set_after(TimerId id, std::chrono::duration<Rep, Period> delay) noexcept {
    return set(id, timer::after(delay));
  }
  /// For coroutines: `co_await timers.after(30ms)`; see Sleep.
  /// @param delay  how long from now; any unit of std::chrono
  template <class Rep, class Period>
  Sleep<BasicTimerWheel> after(std::chrono::duration<Rep, Period> delay) noexcept {
    return {*this, timer::after(delay)};
  }

  /// When advance() should be called next; none while no timer is armed. Exactly the tick of the earliest timer, if that is
  /// less than 64 ticks ahead or at most 64 timers share its slot; else the beginning of that slot, which is not later, and
  /// at which advance() moves them on. So a timer causes at most ten early calls. Not later than the last `now` when timers
  /// wait that other threads have set. Threads: the owner. Cost: at most 64 timers are looked at; those that were cancelled,
  /// once each.
  [[nodiscard]] std::optional<TimePoint> next_expiry() noexcept {
    const Owner owner(*this);
    if constexpr (Locking::kShared) {
      if (drain_mailbox(kLooks) == 0) return Time::time_of(target_);
    }
    std::size_t looks = kLooks;
    for (const std::uint16_t list : {kDueLists[0], kDueLists[1], emptying_})
      if (list != kNoList && has_due(list, looks)) return Time::time_of(target_);
    while (slots_.any()) {
      const WheelPlace first = slots_.first(position_);
      if (const auto tick = earliest_in(first, looks)) return Time::time_of(*tick);
    }
    return std::nullopt;
  }

  /// Calls the timers that are due.
  /// @param now     the time
  /// @param budget  the most steps of work: timers fired, moved or forgotten; at least 1; nullopt: no limit
  /// @return how many timers fired, and whether there is more to do at once.
  /// Threads: the owner; not in a callback.
  Progress advance(TimePoint now, std::optional<std::size_t> budget = std::nullopt) noexcept {
    std::size_t left = budget.value_or(SIZE_MAX);
    FREEHOLD_ASSERT(left > 0);
    const Owner owner(*this);
    if (const Ticks tick = Time::tick_before(now); tick > target_) target_ = tick;
    if constexpr (Locking::kShared)
      left = drain_mailbox(left);
    else if (slots_.empty(due_list()))
      turn_ ^= 1;
    Progress progress;
    bool done = false;
    for (; left > 0; --left) {
      const std::uint32_t index = next_to_resolve();
      if (index == kNoNode) {
        done = true;
        break;
      }
      if (resolve(index)) {
        ++progress.fired;
        call(index);
      }
    }
    // relaxed: the owner's own.
    if (progress.fired > 0) fired_.store(fired_.load(std::memory_order_relaxed) + progress.fired, std::memory_order_relaxed);
    progress.more = !done || has_more();
    return progress;
  }

 private:
  friend struct Inside;  // tests/support/inside.hpp

  // Ends the process in a checked build if an invariant does not hold; at rest. Cost: O(n).
  void check_invariants() const {
    FREEHOLD_ASSERT(position_ <= target_);
    std::size_t linked = 0;
    slots_.check_invariants([&](std::uint32_t index, std::uint16_t list) {
      const Node& node = nodes_[index];
      ++linked;
      if (list >= kDueLists[0]) {
        FREEHOLD_ASSERT(node.state.place() == 0);
      } else if (list != emptying_) {
        const Ticks start = node.state.place();
        FREEHOLD_ASSERT(start > position_ && Slots::place_of(start, position_).slot == list);
        FREEHOLD_ASSERT(Slots::place_of(start, position_).start == start);
      }
      FREEHOLD_ASSERT(!node.state.is_armed() || node.state.is_posted() || node.state.due() >= node.state.place());
    });
    for (std::uint32_t i = 0; i < nodes_.used(); ++i) {
      const Node& node = nodes_[i];
      linked -= node.link.is_linked();
      FREEHOLD_ASSERT(node.link.is_linked() || node.state.place() == kNowhere);
      FREEHOLD_ASSERT(node.link.is_linked() || !node.state.is_armed() || node.state.is_posted());
    }
    FREEHOLD_ASSERT(linked == 0);
  }

  // At most so many timers are looked at for one next_expiry().
  static constexpr std::size_t kLooks = 64;

  template <class L>
  struct StateOf {
    using type = PlainState;
  };
  template <class L>
    requires L::kShared
  struct StateOf<L> {
    using type = SharedState<typename L::Atomics, Orders>;
  };
  struct alignas(base::kCacheLine) Node {
    // Written by any thread; then by its creator; then by the thread that posts it, until the owner has read it.
    typename StateOf<Locking>::type state;
    typename Locking::template var<Callback> callback;
    typename Locking::template var<std::uint32_t> next_posted;
    WheelLink link;

    // The slab's free list.
    [[nodiscard]] std::uint32_t get_next() const noexcept { return next_posted.load(); }
    void set_next(std::uint32_t next) noexcept { next_posted.store(next); }
  };
  static_assert(sizeof(Node) == base::kCacheLine);
  using Nodes = NodeArray<Node, Locking>;
  using Slots = WheelSlots<Nodes>;
  static constexpr auto& kDueLists = Slots::kDueLists;
  static constexpr std::uint16_t kNoList = Slots::kLists;

  // Notices two owners, and advance() in a callback.
  class Owner {
   public:
    explicit Owner(BasicTimerWheel& wheel) noexcept : wheel_(wheel) {
      FREEHOLD_ASSERT(!wheel_.owned_);
      if constexpr (base::kChecked) wheel_.owned_ = true;
    }
    ~Owner() {
      if constexpr (base::kChecked) wheel_.owned_ = false;
    }
    Owner(const Owner&) = delete;
    Owner& operator=(const Owner&) = delete;

   private:
    BasicTimerWheel& wheel_;
  };

  // ---- any thread

  [[nodiscard]] Node* find(TimerId id) const noexcept { return id.index() < nodes_.used() ? &nodes_[id.index()] : nullptr; }

  // The owner will look at the timer. Pre: the state said to post it, so that no other thread does.
  void post(Node& node, std::uint32_t index) noexcept
    requires Locking::kShared
  {
    std::uint32_t below = mailbox_.load(std::memory_order_relaxed);  // relaxed: the compare-exchange decides
    do {
      node.next_posted.store(below);
    } while (!mailbox_.compare_exchange_weak(below, index, Orders::kPost, std::memory_order_relaxed));
  }

  // ---- the owner

  // Timers that were due when they were set fire before the slots. In SingleThreaded there are two lists: one is emptied,
  // while timers that are set then go to the other.
  [[nodiscard]] std::uint16_t due_list() const noexcept { return kDueLists[turn_]; }
  [[nodiscard]] std::uint16_t again_list() const noexcept { return kDueLists[turn_ ^ 1]; }
  [[nodiscard]] bool has_more() const noexcept {
    if constexpr (Locking::kShared)
      return received_ != kNoNode || mailbox_.load(std::memory_order_relaxed) != kNoNode;  // relaxed: a hint
    else
      return !slots_.empty(again_list());
  }

  // Links the timer where it belongs, or not at all; what is due until `until` goes to `list`. Pre: it is not linked.
  Resolved link_anew(std::uint32_t index, bool from_mailbox, bool may_fire, Ticks until, std::uint16_t list) noexcept {
    WheelPlace place{};
    const Resolved found = nodes_[index].state.resolve(from_mailbox, may_fire, position_, [&](Ticks due) {
      place = due <= until ? WheelPlace{list, 0} : Slots::place_of(due, position_);
      return place.start;
    });
    if (found == Resolved::kPlaced) slots_.link(index, place.slot);
    return found;
  }

  // SingleThreaded: the timer was set to a tick before the slot in which it is linked, if it is.
  void link_earlier(Node& node, std::uint32_t index) noexcept {
    if (node.link.is_linked()) slots_.unlink(index);
    link_anew(index, false, false, target_, again_list());
  }

  // Unlinks the timer and links it where it belongs now, or not at all. True: it is due, and is not armed any more.
  bool resolve(std::uint32_t index) noexcept {
    slots_.unlink(index);
    return link_anew(index, false, true, position_, kNoList) == Resolved::kDue;
  }

  void call(std::uint32_t index) noexcept {
    const Node& node = nodes_[index];
    node.callback.load()(TimerId(index, node.state.generation()));
  }

  // The next timer that advance() has to look at, or kNoNode; goes on to the slot of it.
  [[nodiscard]] std::uint32_t next_to_resolve() noexcept {
    if (!slots_.empty(due_list())) return slots_.head(due_list());
    if (emptying_ != kNoList && !slots_.empty(emptying_)) return slots_.head(emptying_);
    emptying_ = kNoList;
    if (slots_.any()) {
      const WheelPlace first = slots_.first(position_);
      if (first.start <= target_) {
        position_ = first.start;
        emptying_ = first.slot;
        return slots_.head(first.slot);
      }
    }
    position_ = target_;
    return kNoNode;
  }

  // Looks at the timers that other threads posted before the call, at most `budget`; returns what is left of it. Zero:
  // there may be more.
  std::size_t drain_mailbox(std::size_t budget) noexcept
    requires Locking::kShared
  {
    bool took = false;  // once: a timer that is posted again at once, see kBusy, is for the next call
    for (; budget > 0; --budget) {
      if (received_ == kNoNode) {
        // relaxed: a glance; a timer that is posted after it is for the next call.
        if (took || mailbox_.load(std::memory_order_relaxed) == kNoNode) return budget;
        received_ = mailbox_.exchange(kNoNode, Orders::kTake);
        took = true;
      }
      const std::uint32_t index = received_;
      received_ = nodes_[index].next_posted.load();
      process_message(index);
    }
    return 0;
  }

  void process_message(std::uint32_t index) noexcept
    requires Locking::kShared
  {
    Node& node = nodes_[index];
    if (node.link.is_linked()) slots_.unlink(index);
    const Resolved found = link_anew(index, true, false, position_, due_list());
    if (found == Resolved::kEnded) nodes_.free(index);
    if (found == Resolved::kBusy) post(node, index);
  }

  // Returns whether one of a list is due; moves on those that are not. Takes from `looks`; when they are used up: true.
  bool has_due(std::uint16_t list, std::size_t& looks) noexcept {
    while (!slots_.empty(list)) {
      const auto& state = nodes_[slots_.head(list)].state;
      if (looks == 0 || (state.is_armed() && state.due() <= target_)) return true;
      --looks;
      relink(slots_.head(list));
    }
    return false;
  }

  // Moves a timer that does not belong where it is, as far as the owner saw; or not at all, if it is not armed.
  void relink(std::uint32_t index) noexcept {
    slots_.unlink(index);
    link_anew(index, false, false, position_, due_list());
  }

  // The earliest tick at which a timer of this slot is due; none if no timer belongs there. Moves on those that do not.
  [[nodiscard]] std::optional<Ticks> earliest_in(const WheelPlace& slot, std::size_t& looks) noexcept {
    std::optional<Ticks> earliest;
    for (std::uint32_t i = slots_.head(slot.slot); i != kNoNode;) {
      if (looks == 0) return slot.start;
      --looks;
      const Node& node = nodes_[i];
      const std::uint32_t next = node.link.next;
      const Ticks due = node.state.due();
      if (node.state.is_armed() && due > position_ && Slots::place_of(due, position_).slot == slot.slot) {
        if (Slots::is_one_tick(slot.slot)) return due;
        if (!earliest || due < *earliest) earliest = due;
      } else {
        relink(i);
      }
      i = next;
    }
    return earliest;
  }

  // Any thread.
  alignas(base::kCacheLine) typename Locking::template atomic<std::uint32_t> mailbox_{kNoNode};
  alignas(base::kCacheLine) Nodes nodes_;
  // The owner.
  alignas(base::kCacheLine) Slots slots_;
  Ticks position_ = 0;
  Ticks target_ = 0;
  typename Locking::template atomic<std::uint64_t> fired_{0};  // read by any thread
  std::uint32_t received_ = kNoNode;                           // what was taken from mailbox_ and not looked at yet
  std::uint16_t emptying_ = kNoList;                           // the slot at the position, while it is not empty
  std::uint8_t turn_ = 0;
  bool owned_ = false;  // in a checked build
};

/// A hierarchical timing wheel: create, set, cancel, destroy and next_expiry in O(1). Times are rounded up to ticks.
/// @tparam Locking  SingleThreaded, or AnyThread
/// @tparam Tick     the unit of time that the wheel knows, for example std::chrono::microseconds
template <class Locking = SingleThreaded, class Tick = std::chrono::milliseconds>
using TimerWheel = BasicTimerWheel<Locking, Tick, WheelOrders>;
static_assert(Timers<TimerWheel<>>);
static_assert(Timers<TimerWheel<AnyThread>>);

}  // namespace freehold::timer

namespace freehold {
using timer::TimerWheel;
}  // namespace freehold
