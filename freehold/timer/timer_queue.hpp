// SPDX-License-Identifier: MIT
// Timers in the order of their exact times: the successor of the queue of "Practical testing 30"
// (lab/timers/deque_timer_queue.hpp). Its nodes are in the queue's own memory and bring their links along, so that set()
// and cancel() allocate nothing. All timers of one time leave the order in one step.
//
//   Invariant: a timer is armed if and only if it is in queue_, due_ or again_. due_ has what advance() is about to call;
//   again_ what was set to a time that had come already while advance() ran.
//
// Threads: as the policy says, by one lock, which is not held while a callback runs.
// Cost: set O(log of the number of distinct times), cancel mostly O(1), create, destroy and next_expiry O(1).
// Memory: 88 bytes a timer; that of destroyed ones is used again, and goes back to the system at the queue's end.
// Errors: the constructor throws std::bad_alloc when there is no address space.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>

#include "freehold/base/check.hpp"
#include "freehold/sync/lock.hpp"
#include "freehold/timer/intrusive_list.hpp"
#include "freehold/timer/intrusive_multimap.hpp"
#include "freehold/timer/locking.hpp"
#include "freehold/timer/node_array.hpp"
#include "freehold/timer/timer.hpp"

namespace freehold::timer {

/// Timers in the order of their exact times; set() and cancel() allocate nothing.
/// @tparam Locking  SingleThreaded, or AnyThread
/// Cost: set O(log of the number of distinct times), cancel mostly O(1), create, destroy and next_expiry O(1).
template <class Locking = SingleThreaded>
class TimerQueue {
 public:
  /// Says whether several threads may use it; see SharedTimers.
  static constexpr bool kShared = Locking::kShared;

  /// A queue without timers.
  /// @param max_timers  the most timers at a time; their address space is reserved
  /// Errors: std::bad_alloc when there is no address space.
  explicit TimerQueue(std::size_t max_timers = kDefaultTimers) : nodes_(max_timers) {}
  TimerQueue(const TimerQueue&) = delete;
  TimerQueue& operator=(const TimerQueue&) = delete;

  /// Creates a timer that is not armed.
  /// @param callback  is called by advance() when the timer's time has come; see Callback
  /// @return its handle; none if there is no memory or no room.
  [[nodiscard]] TimerId create(Callback callback) noexcept {
    const Guard guard(lock_);
    const std::uint32_t index = nodes_.allocate();
    if (index == kNoNode) return {};
    Node& node = nodes_[index];
    node.callback = callback;
    node.is_live = true;
    return TimerId(index, node.generation);
  }

  /// Arms a timer, or arms it again.
  /// @param id    the timer
  /// @param time  when it fires
  /// @return see SetResult.
  SetResult set(TimerId id, TimePoint time) noexcept {
    const Guard guard(lock_);
    Node* const node = find(id);
    if (node == nullptr) return SetResult::kNoTimer;
    const bool was_armed = disarm(*node);
    node->key = time;
    if (advancing_ && time <= now_) {
      again_.push_back(*node);
    } else {
      queue_.insert(*node);
    }
    return was_armed ? SetResult::kRearmed : SetResult::kArmed;
  }

  /// Disarms a timer.
  /// @param id  the timer
  /// @return whether it was armed and will not fire.
  bool cancel(TimerId id) noexcept {
    const Guard guard(lock_);
    Node* const node = find(id);
    return node != nullptr && disarm(*node);
  }

  /// Ends a timer, armed or not, also from its own callback.
  /// @param id  the timer
  /// @return whether it was there. Another thread's callback may still run.
  bool destroy(TimerId id) noexcept {
    const Guard guard(lock_);
    Node* const node = find(id);
    if (node == nullptr) return false;
    disarm(*node);
    node->is_live = false;
    if (++node->generation == 0) node->generation = 1;
    nodes_.free(nodes_.index_of(*node));
    return true;
  }

  /// The time that an armed timer was set to.
  /// @param id  the timer
  /// @return the time; none: the timer is not armed, or not there.
  [[nodiscard]] std::optional<TimePoint> expiry(TimerId id) const noexcept {
    const Guard guard(lock_);
    const Node* const node = find(id);
    if (node == nullptr || !node->is_linked()) return std::nullopt;
    return node->key;
  }
  /// A snapshot; see TimerStats.
  [[nodiscard]] TimerStats stats() const noexcept {
    const Guard guard(lock_);
    return {nodes_.allocated(), nodes_.used(), fired_};
  }
  /// The latest `now` that advance() was given. Where advance() is called.
  [[nodiscard]] TimePoint now() const noexcept {
    const Guard guard(lock_);
    return now_;
  }

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
  Sleep<TimerQueue> after(std::chrono::duration<Rep, Period> delay) noexcept {
    return {*this, timer::after(delay)};
  }

  /// When advance() should be called next; none while no timer is armed. Not later than the earliest timer's time.
  [[nodiscard]] std::optional<TimePoint> next_expiry() const noexcept {
    const Guard guard(lock_);
    if (!due_.empty() || !again_.empty()) return now_;
    if (!queue_.empty()) return queue_.front().key;
    return std::nullopt;
  }

  /// Calls the timers that are due.
  /// @param now     the time
  /// @param budget  the most steps of work: timers fired, moved or forgotten; at least 1; nullopt: no limit
  /// @return how many timers fired, and whether there is more to do at once.
  /// Threads: the owner; not in a callback.
  Progress advance(TimePoint now, std::optional<std::size_t> budget = std::nullopt) noexcept {
    const std::size_t most = budget.value_or(SIZE_MAX);
    const Guard guard(lock_);
    FREEHOLD_ASSERT(!advancing_ && most > 0);
    if (now > now_) now_ = now;
    due_.splice_back(again_);
    advancing_ = true;
    Progress progress;
    for (; is_due() && progress.fired < most; ++progress.fired) fire();
    advancing_ = false;
    fired_ += progress.fired;
    progress.more = is_due() || !again_.empty();
    return progress;
  }

 private:
  friend struct Inside;  // tests/support/inside.hpp

  // Ends the process in a checked build if an invariant does not hold. Cost: O(n).
  void check_invariants() const {
    const Guard guard(lock_);
    queue_.check_invariants();
    due_.check_invariants();
    again_.check_invariants();
    std::size_t linked = 0, listed = 0;
    for (std::uint32_t i = 0; i < nodes_.used(); ++i) {
      FREEHOLD_ASSERT(nodes_[i].is_live || !nodes_[i].is_linked());
      linked += nodes_[i].is_linked();
    }
    const auto count = [&](const Node&) { ++listed; };
    queue_.for_each(count);
    due_.for_each(count);
    again_.for_each(count);
    FREEHOLD_ASSERT(linked == listed);
  }

  struct Node : MultimapHook<Node, TimePoint> {
    Callback callback;
    std::uint32_t generation = 1;
    std::uint32_t next_free = kNoNode;
    bool is_live = false;  // created and not destroyed

    [[nodiscard]] std::uint32_t get_next() const noexcept { return next_free; }
    void set_next(std::uint32_t next) noexcept { next_free = next; }
  };
  using Mutex = typename Locking::Mutex;
  using Guard = sync::Guard<Mutex>;

  [[nodiscard]] Node* find(TimerId id) const noexcept {
    if (id.index() >= nodes_.used()) return nullptr;
    Node& node = nodes_[id.index()];
    return node.generation == id.generation() && node.is_live ? &node : nullptr;
  }
  // Returns whether it was armed.
  bool disarm(Node& node) noexcept {
    if (!node.is_linked()) return false;
    queue_.erase(node);  // also from due_ or again_
    return true;
  }
  // Returns whether something is due: then due_ has it.
  [[nodiscard]] bool is_due() noexcept {
    if (!due_.empty()) return true;
    if (queue_.empty() || queue_.front().key > now_) return false;
    queue_.take_front(due_);
    return true;
  }
  void fire() noexcept {
    Node& node = due_.pop_front();
    const TimerId id(nodes_.index_of(node), node.generation);
    const Callback callback = node.callback;
    const Unguard<Mutex> callbacks_run_without_the_lock(lock_);
    callback(id);
  }

  [[no_unique_address]] mutable Mutex lock_;
  bool advancing_ = false;
  TimePoint now_ = TimePoint::min();
  std::uint64_t fired_ = 0;
  NodeArray<Node, SingleThreaded> nodes_;
  IntrusiveMultimap<Node, TimePoint> queue_;
  IntrusiveList<Node> due_;
  IntrusiveList<Node> again_;
};
static_assert(Timers<TimerQueue<>>);

}  // namespace freehold::timer

namespace freehold {
using timer::TimerQueue;
}  // namespace freehold
