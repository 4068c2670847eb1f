// The successor of the article's queue (container_timer_queue.hpp): the same order by exact times, but its nodes are in the
// queue's own memory and bring their links along, so that set() and cancel() allocate nothing, whatever the heap; and all
// timers of one time leave the order in one step.
//
//   Invariant: a timer is armed if and only if it is in queue_, due_ or again_. due_ has what advance() is about to call;
//   again_ what was set to a time that had come already while advance() ran.
//
// Threads: as the policy says, by one lock, which is not held while a callback runs.
// Cost: set O(log of the number of distinct times), cancel mostly O(1), create, destroy and next_expiry O(1).
// Memory: 88 bytes a timer; that of destroyed ones is used again, and goes back to the system at the queue's end.
// Errors: the constructor throws std::bad_alloc when there is no address space.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "freehold/base/check.hpp"
#include "freehold/sync/lock.hpp"
#include "freehold/timer/intrusive_list.hpp"
#include "freehold/timer/intrusive_multimap.hpp"
#include "freehold/timer/locking.hpp"
#include "freehold/timer/slab.hpp"
#include "freehold/timer/sleep.hpp"
#include "freehold/timer/timer.hpp"

namespace freehold::timer {

template <class Locking = SingleThreaded>
class TimerQueue {
 public:
  static constexpr bool kShared = Locking::kShared;

  explicit TimerQueue(std::size_t max_timers = kDefaultTimers) : nodes_(max_timers) {}
  TimerQueue(const TimerQueue&) = delete;
  TimerQueue& operator=(const TimerQueue&) = delete;

  [[nodiscard]] TimerId create(Callback callback, void* context) noexcept {
    const Guard guard(lock_);
    const std::uint32_t index = nodes_.take();
    if (index == kNoNode) return {};
    Node& node = nodes_[index];
    node.callback = callback;
    node.context = context;
    node.is_live = true;
    return TimerId(index, node.generation);
  }

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

  bool cancel(TimerId id) noexcept {
    const Guard guard(lock_);
    Node* const node = find(id);
    return node != nullptr && disarm(*node);
  }

  bool destroy(TimerId id) noexcept {
    const Guard guard(lock_);
    Node* const node = find(id);
    if (node == nullptr) return false;
    disarm(*node);
    node->is_live = false;
    if (++node->generation == 0) node->generation = 1;
    nodes_.give(nodes_.index_of(*node));
    return true;
  }

  [[nodiscard]] std::optional<TimePoint> expiry(TimerId id) const noexcept {
    const Guard guard(lock_);
    const Node* const node = find(id);
    if (node == nullptr || !node->is_linked()) return std::nullopt;
    return node->key;
  }
  [[nodiscard]] TimerStats stats() const noexcept {
    const Guard guard(lock_);
    return {nodes_.taken(), nodes_.used(), fired_};
  }
  [[nodiscard]] TimePoint now() const noexcept {
    const Guard guard(lock_);
    return now_;
  }

  // Arms a timer `delay` from now. Units: any of std::chrono.
  template <class Rep, class Period>
  SetResult set_after(TimerId id, std::chrono::duration<Rep, Period> delay) noexcept {
    return set(id, timer::after(delay));
  }
  // For coroutines: `co_await timers.after(30ms)`; see sleep.hpp.
  template <class Rep, class Period>
  Sleep<TimerQueue> after(std::chrono::duration<Rep, Period> delay) noexcept {
    return {*this, timer::after(delay)};
  }

  [[nodiscard]] std::optional<TimePoint> next_expiry() const noexcept {
    const Guard guard(lock_);
    if (!due_.empty() || !again_.empty()) return now_;
    if (!queue_.empty()) return queue_.front().key;
    return std::nullopt;
  }

  Progress advance(TimePoint now, std::size_t budget = kUnlimited) noexcept {
    const Guard guard(lock_);
    FREEHOLD_ASSERT(!advancing_ && budget > 0);
    if (now > now_) now_ = now;
    due_.splice_back(again_);
    advancing_ = true;
    Progress progress;
    for (; is_due() && progress.fired < budget; ++progress.fired) fire();
    advancing_ = false;
    fired_ += progress.fired;
    progress.more = is_due() || !again_.empty();
    return progress;
  }

  // The invariant. Cost: O(n). For tests.
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

 private:
  struct Node : MultimapHook<Node, TimePoint> {
    Callback callback = nullptr;
    void* context = nullptr;
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
  // Whether it was armed.
  bool disarm(Node& node) noexcept {
    if (!node.is_linked()) return false;
    queue_.erase(node);  // also from due_ or again_
    return true;
  }
  // Whether something is due: then due_ has it.
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
    void* const context = node.context;
    const Unguard<Mutex> callbacks_run_without_the_lock(lock_);
    callback(context, id);
  }

  [[no_unique_address]] mutable Mutex lock_;
  bool advancing_ = false;
  TimePoint now_ = TimePoint::min();
  std::uint64_t fired_ = 0;
  Slab<Node, SingleThreaded> nodes_;
  IntrusiveMultimap<Node, TimePoint> queue_;
  IntrusiveList<Node> due_;
  IntrusiveList<Node> again_;
};
static_assert(Timers<TimerQueue<>>);

}  // namespace freehold::timer

namespace freehold {
using timer::TimerQueue;
}  // namespace freehold
