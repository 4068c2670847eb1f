// A hierarchical timing wheel: set and cancel in O(1), whatever the number of timers and however far their times.
// Times are rounded up to ticks; a timer fires at the first advance() whose `now` is in its tick or after. Slots begin at
// ticks (wheel_slots.hpp); advance() goes from used slot to used slot, not from tick to tick, calls what is due in each and
// moves the others on to lower levels, where their ticks are told apart more finely: at most ten moves in a timer's life.
// Cancelled and postponed timers stay linked until their slot comes (timer_state.hpp), so that the hot case, set and cancel
// again and again, touches one line, the timer's own.
//
//   Invariant: that of WheelSlots and of the timers' states; position_ <= target_, the tick of the latest `now`; no armed
//   timer is linked in a slot that begins before the position but for the slot that is being emptied and the due lists.
//
// Threads: by the policy. SingleThreaded: one at a time, no atomics. AnyThread: an owner, which is who calls advance() and
// next_expiry(), one thread at a time; create, set, cancel and destroy from any thread, callbacks included. cancel() is
// lock-free and waits for nobody: a compare-exchange on the timer's own line. set() and destroy() put the timer on a list
// for the owner, unless it is there or will be looked at in time; they never wait for the owner, but a set() for another
// set() of the same timer. create() takes a lock of a few instructions. What is destroyed can be used again after the next
// advance(). What a thread did before set() is visible to the callback. Nobody is woken: that is the driver's part
// (driver.hpp). Cost: all O(1), next_expiry() and the slots of an advance() too. Memory: one line of 64 bytes a timer, 3 KiB
// a wheel. Errors: the constructor throws std::bad_alloc when there is no address space.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "freehold/base/bits.hpp"
#include "freehold/base/check.hpp"
#include "freehold/timer/locking.hpp"
#include "freehold/timer/slab.hpp"
#include "freehold/timer/sleep.hpp"
#include "freehold/timer/timer.hpp"
#include "freehold/timer/timer_state.hpp"
#include "freehold/timer/wheel_slots.hpp"

namespace freehold::timer {

struct WheelOrders : TimerOrders {
  // release: pairs with kTake; publishes the link to the one below.
  static constexpr std::memory_order kTell = std::memory_order_release;
  // acquire: pairs with every kTell of the timers that it takes.
  static constexpr std::memory_order kTake = std::memory_order_acquire;
};

// `Tick`: the unit of time that the wheel knows, for example std::chrono::microseconds.
template <class Locking = SingleThreaded, class Tick = std::chrono::milliseconds, class Orders = WheelOrders>
class TimerWheel {
  static constexpr std::int64_t kTick = std::chrono::duration_cast<Clock::duration>(Tick(1)).count();
  static_assert(kTick > 0 && Tick(1) == Clock::duration(kTick), "a multiple of the clock's own unit");

 public:
  using TickDuration = Tick;
  static constexpr bool kShared = Locking::kShared;
  // A timer that was destroyed can be used again after the next advance() only.
  static constexpr bool kReclaimsInAdvance = Locking::kShared;

  explicit TimerWheel(std::size_t max_timers = kDefaultTimers) : nodes_(max_timers), slots_(nodes_) {}
  TimerWheel(const TimerWheel&) = delete;
  TimerWheel& operator=(const TimerWheel&) = delete;

  [[nodiscard]] TimerId create(Callback callback, void* context) noexcept {
    const std::uint32_t index = nodes_.take();
    if (index == kNoNode) [[unlikely]]
      return {};
    Node& node = nodes_[index];
    node.callback.store(callback);
    node.context.store(context);
    return TimerId(index, node.state.begin());
  }

  SetResult set(TimerId id, TimePoint time) noexcept {
    Node* const node = find(id);
    if (node == nullptr) [[unlikely]]
      return SetResult::kNoTimer;
    const Ticks due = tick_after(time);
    const ArmResult armed = node->state.arm(id.generation(), due);
    if constexpr (Locking::kShared) {
      if (armed.tell) tell(*node, id.index());
    } else {
      // In a callback, the slot in which it is linked may come in this very call, which may have called the timer already.
      if (armed.tell || (due <= target_ && is_set(armed.result))) relink(*node, id.index());
    }
    return armed.result;
  }

  bool cancel(TimerId id) noexcept {
    Node* const node = find(id);
    return node != nullptr && node->state.disarm(id.generation());
  }

  bool destroy(TimerId id) noexcept {
    Node* const node = find(id);
    if (node == nullptr) return false;
    const EndResult end = node->state.end(id.generation());
    if (end.tell) {
      if constexpr (Locking::kShared) {
        tell(*node, id.index());
      } else {
        if (node->link.is_linked()) slots_.unlink(id.index());
        nodes_.give(id.index());
      }
    }
    return end.ended;
  }

  // Any thread; waits for a set() of the same timer that is under way. The end of the tick that the timer was set to.
  [[nodiscard]] std::optional<TimePoint> expiry(TimerId id) const noexcept {
    const Node* const node = find(id);
    if (node == nullptr) return std::nullopt;
    const std::optional<Ticks> due = node->state.armed_for(id.generation());
    return due ? std::optional(time_of(*due)) : std::nullopt;
  }
  // Any thread. Cost: the lock of create().
  [[nodiscard]] TimerStats stats() const noexcept {
    return {nodes_.taken(), nodes_.used(), fired_.load(std::memory_order_relaxed)};  // relaxed: a statistic
  }
  // The owner.
  [[nodiscard]] TimePoint now() const noexcept { return time_of(target_); }

  // Arms a timer `delay` from now. Units: any of std::chrono.
  template <class Rep, class Period>
  SetResult set_after(TimerId id, std::chrono::duration<Rep, Period> delay) noexcept {
    return set(id, timer::after(delay));
  }
  // For coroutines: `co_await timers.after(30ms)`; see sleep.hpp.
  template <class Rep, class Period>
  Sleep<TimerWheel> after(std::chrono::duration<Rep, Period> delay) noexcept {
    return {*this, timer::after(delay)};
  }

  // The owner. Exactly the tick of the earliest timer, if that is less than 64 ticks ahead or at most kLooks timers share
  // its slot; else the beginning of that slot, which is not later, and at which advance() moves them on. So a timer causes
  // at most ten early calls. Not later than the last `now` when timers wait that other threads have set. Cost: at most
  // kLooks timers are looked at; those that were cancelled, once each.
  [[nodiscard]] std::optional<TimePoint> next_expiry() noexcept {
    const Owner owner(*this);
    if constexpr (Locking::kShared) {
      if (listen(kLooks) == 0) return time_of(target_);
    }
    std::size_t looks = kLooks;
    for (const std::uint16_t list : {kDueLists[0], kDueLists[1], emptying_})
      if (list != kNoList && has_due(list, looks)) return time_of(target_);
    while (slots_.any()) {
      const WheelPlace first = slots_.first(position_);
      if (const auto tick = earliest_in(first, looks)) return time_of(*tick);
    }
    return std::nullopt;
  }

  // The owner; see timer.hpp.
  Progress advance(TimePoint now, std::size_t budget = kUnlimited) noexcept {
    FREEHOLD_ASSERT(budget > 0);
    const Owner owner(*this);
    target_ = std::max(target_, tick_before(now));
    if constexpr (Locking::kShared)
      budget = listen(budget);
    else if (slots_.empty(due_list()))
      turn_ ^= 1;
    Progress progress;
    bool done = false;
    for (; budget > 0; --budget) {
      const std::uint32_t index = next_to_settle();
      if (index == kNoNode) {
        done = true;
        break;
      }
      if (settle(index)) {
        ++progress.fired;
        call(index);
      }
    }
    // relaxed: the owner's own.
    if (progress.fired > 0) fired_.store(fired_.load(std::memory_order_relaxed) + progress.fired, std::memory_order_relaxed);
    progress.more = !done || has_more();
    return progress;
  }

  // The invariant. At rest. Cost: O(n). For tests.
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
      FREEHOLD_ASSERT(!node.state.is_armed() || node.state.is_told() || node.state.due() >= node.state.place());
    });
    for (std::uint32_t i = 0; i < nodes_.used(); ++i) {
      const Node& node = nodes_[i];
      linked -= node.link.is_linked();
      FREEHOLD_ASSERT(node.link.is_linked() || node.state.place() == kNowhere);
      FREEHOLD_ASSERT(node.link.is_linked() || !node.state.is_armed() || node.state.is_told());
    }
    FREEHOLD_ASSERT(linked == 0);
  }

 private:
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
    // Any thread; then who created it; then whoever told the owner, until the owner has read it; then the owner.
    typename StateOf<Locking>::type state;
    typename Locking::template var<Callback> callback;
    typename Locking::template var<void*> context;
    typename Locking::template var<std::uint32_t> told_below;
    WheelLink link;

    // The slab's free list.
    [[nodiscard]] std::uint32_t get_next() const noexcept { return told_below.load(); }
    void set_next(std::uint32_t next) noexcept { told_below.store(next); }
  };
  static_assert(sizeof(Node) == base::kCacheLine);
  using Nodes = Slab<Node, Locking>;
  using Slots = WheelSlots<Nodes>;
  static constexpr auto& kDueLists = Slots::kDueLists;
  static constexpr std::uint16_t kNoList = Slots::kLists;

  // Notices two owners, and advance() in a callback.
  class Owner {
   public:
    explicit Owner(TimerWheel& wheel) noexcept : wheel_(wheel) {
      FREEHOLD_ASSERT(!wheel_.owned_);
      if constexpr (base::kChecked) wheel_.owned_ = true;
    }
    ~Owner() {
      if constexpr (base::kChecked) wheel_.owned_ = false;
    }
    Owner(const Owner&) = delete;
    Owner& operator=(const Owner&) = delete;

   private:
    TimerWheel& wheel_;
  };

  // ---- times and ticks. Ticks are counted from the earliest one there can be, so that all are positive.

  static constexpr Ticks kSign = Ticks{1} << 63;
  [[nodiscard]] static Ticks biased(std::int64_t ticks) noexcept { return static_cast<Ticks>(ticks) ^ kSign; }
  // The first tick that begins at `time` or after it. The last one is that of the end of time; kNowhere is none.
  [[nodiscard]] static Ticks tick_after(TimePoint time) noexcept {
    const std::int64_t count = time.time_since_epoch().count();
    const Ticks tick = biased(count / kTick + (count % kTick > 0 ? 1 : 0));
    return tick == kNowhere ? tick - 1 : tick;
  }
  [[nodiscard]] static Ticks tick_before(TimePoint time) noexcept {
    const std::int64_t count = time.time_since_epoch().count();
    return biased(count / kTick - (count % kTick < 0 ? 1 : 0));
  }
  [[nodiscard]] static TimePoint time_of(Ticks tick) noexcept {
    if (tick == kNowhere - 1) return TimePoint::max();
    const auto count = static_cast<std::int64_t>(tick ^ kSign);
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / kTick;
    if (count > kMost) return TimePoint::max();
    if (count < -kMost) return TimePoint::min();
    return TimePoint(Clock::duration(count * kTick));
  }

  // ---- any thread

  [[nodiscard]] Node* find(TimerId id) const noexcept { return id.index() < nodes_.used() ? &nodes_[id.index()] : nullptr; }

  // The owner will look at the timer. Pre: the state said to tell it, so that nobody else does.
  void tell(Node& node, std::uint32_t index) noexcept
    requires Locking::kShared
  {
    std::uint32_t below = told_.load(std::memory_order_relaxed);  // relaxed: the compare-exchange decides
    do {
      node.told_below.store(below);
    } while (!told_.compare_exchange_weak(below, index, Orders::kTell, std::memory_order_relaxed));
  }

  // ---- the owner

  // What was due when it was set fires before the slots. In SingleThreaded there are two lists: one is emptied, while what
  // is set meanwhile goes to the other.
  [[nodiscard]] std::uint16_t due_list() const noexcept { return kDueLists[turn_]; }
  [[nodiscard]] std::uint16_t again_list() const noexcept { return kDueLists[turn_ ^ 1]; }
  [[nodiscard]] bool has_more() const noexcept {
    if constexpr (Locking::kShared)
      return listening_ != kNoNode || told_.load(std::memory_order_relaxed) != kNoNode;  // relaxed: a hint
    else
      return !slots_.empty(again_list());
  }

  // Where a timer belongs that may fire after `until` only; what is due before goes to `list`.
  [[nodiscard]] WheelPlace place_for(Ticks due, Ticks until, std::uint16_t list) const noexcept {
    return due <= until ? WheelPlace{list, 0} : Slots::place_of(due, position_);
  }

  // Set by the one thread there is to a tick before the slot in which it is linked, if it is.
  void relink(Node& node, std::uint32_t index) noexcept {
    if (node.link.is_linked()) slots_.unlink(index);
    WheelPlace place{};
    node.state.settle(false, false, position_, [&](Ticks due) {
      place = place_for(due, target_, again_list());
      return place.start;
    });
    slots_.link(index, place.slot);
  }

  // Unlinks the timer and links it where it belongs now, or not at all. True: it is due, and is not armed any more.
  bool settle(std::uint32_t index) noexcept {
    slots_.unlink(index);
    WheelPlace place{};
    const Settled found = nodes_[index].state.settle(false, true, position_, [&](Ticks due) {
      place = Slots::place_of(due, position_);
      return place.start;
    });
    if (found == Settled::kPlaced) slots_.link(index, place.slot);
    return found == Settled::kDue;
  }

  void call(std::uint32_t index) noexcept {
    const Node& node = nodes_[index];
    node.callback.load()(node.context.load(), TimerId(index, node.state.generation()));
  }

  // The next timer that advance() has to look at, or kNoNode; goes on to the slot of it.
  [[nodiscard]] std::uint32_t next_to_settle() noexcept {
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

  // Looks at the timers of which other threads told before the call, at most `budget`; returns what is left of it. Zero:
  // there may be more.
  std::size_t listen(std::size_t budget) noexcept
    requires Locking::kShared
  {
    bool took = false;  // once: a timer that is told again at once, see kBusy, is for the next call
    for (; budget > 0; --budget) {
      if (listening_ == kNoNode) {
        // relaxed: a glance; what is told after it is for the next call, too.
        if (took || told_.load(std::memory_order_relaxed) == kNoNode) return budget;
        listening_ = told_.exchange(kNoNode, Orders::kTake);
        took = true;
      }
      const std::uint32_t index = listening_;
      listening_ = nodes_[index].told_below.load();
      heed(index);
    }
    return 0;
  }

  void heed(std::uint32_t index) noexcept
    requires Locking::kShared
  {
    Node& node = nodes_[index];
    if (node.link.is_linked()) slots_.unlink(index);
    WheelPlace place{};
    switch (node.state.settle(true, false, position_, [&](Ticks due) {
      place = place_for(due, position_, due_list());
      return place.start;
    })) {
      case Settled::kPlaced: slots_.link(index, place.slot); break;
      case Settled::kEnded: nodes_.give(index); break;
      case Settled::kBusy: tell(node, index); break;
      case Settled::kIdle:
      case Settled::kDue: break;
    }
  }

  // Whether one of a list is due; moves on those that are not. Takes from `looks`; when they are used up: true.
  bool has_due(std::uint16_t list, std::size_t& looks) noexcept {
    while (!slots_.empty(list)) {
      const auto& state = nodes_[slots_.head(list)].state;
      if (looks == 0 || (state.is_armed() && state.due() <= target_)) return true;
      --looks;
      forget(slots_.head(list));
    }
    return false;
  }

  // Looks at a timer that does not belong where it is linked, as far as the owner saw.
  void forget(std::uint32_t index) noexcept {
    slots_.unlink(index);
    WheelPlace place{};
    const Settled found = nodes_[index].state.settle(false, false, position_, [&](Ticks due) {
      place = place_for(due, position_, due_list());
      return place.start;
    });
    if (found == Settled::kPlaced) slots_.link(index, place.slot);
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
        forget(i);
      }
      i = next;
    }
    return earliest;
  }

  // Any thread.
  alignas(base::kCacheLine) typename Locking::template atomic<std::uint32_t> told_{kNoNode};
  alignas(base::kCacheLine) Nodes nodes_;
  // The owner.
  alignas(base::kCacheLine) Slots slots_;
  Ticks position_ = 0;
  Ticks target_ = 0;
  typename Locking::template atomic<std::uint64_t> fired_{0};  // read by any thread
  std::uint32_t listening_ = kNoNode;                          // what was taken from told_ and not looked at yet
  std::uint16_t emptying_ = kNoList;                           // the slot at the position, while it is not empty
  std::uint8_t turn_ = 0;
  bool owned_ = false;  // in a checked build
};
static_assert(Timers<TimerWheel<>>);
static_assert(Timers<TimerWheel<AnyThread>>);

}  // namespace freehold::timer

namespace freehold {
using timer::TimerWheel;
}  // namespace freehold
