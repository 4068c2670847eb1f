// SPDX-License-Identifier: MIT
// The timer queue of "Practical testing 30: reducing contention" (Len Holgate): standard containers, a map from handles to
// timers and a multimap from times to armed timers, on an allocator of the user's choice. With std::allocator every set()
// takes a node from the program's heap and every cancel() gives one back, so the queue contends with all who use that heap;
// on a private heap it contends with its own users only. Kept to be measured; TimerQueue and TimerWheel allocate nothing
// there.
//
//   Invariant: a timer is armed if and only if one entry of queue_ or again_ points at it, and it knows that entry. again_
//   has what was set to a time that had come already while advance() ran; the next advance() takes it over.
//
// Threads: as the policy says, by one lock, which is not held while a callback runs.
// Cost: create, set, cancel, destroy O(log n); create and a set() of what is not armed allocate. next_expiry O(1).
// Errors: none thrown; what the allocator refuses is none or kNoMemory.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <optional>

#include "freehold/base/check.hpp"
#include "freehold/sync/lock.hpp"
#include "freehold/timer/locking.hpp"
#include "freehold/timer/timer.hpp"

namespace freehold::timer {

// Its functions are those of Timers (freehold/timer/timer.hpp). `Allocator`: where its nodes come from.
template <class Allocator = std::allocator<std::byte>, class Locking = SingleThreaded>
class ContainerTimerQueue {
 public:
  static constexpr bool kShared = Locking::kShared;

  ContainerTimerQueue() = default;
  explicit ContainerTimerQueue(const Allocator& allocator) : timers_(allocator), queue_(allocator), again_(allocator) {}
  ContainerTimerQueue(const ContainerTimerQueue&) = delete;
  ContainerTimerQueue& operator=(const ContainerTimerQueue&) = delete;

  [[nodiscard]] TimerId create(Callback callback, void* context) noexcept {
    const Guard guard(lock_);
    try {
      timers_.try_emplace(timers_.end(), ++last_id_, Timer{callback, context, {}, State::kIdle});
    } catch (const std::bad_alloc&) {
      return {};
    }
    most_ = std::max(most_, timers_.size());
    return TimerId(last_id_);
  }

  SetResult set(TimerId id, TimePoint time) noexcept {
    const Guard guard(lock_);
    const auto found = timers_.find(id.value());
    if (found == timers_.end()) return SetResult::kNoTimer;
    Timer& timer = found->second;
    Queue& to = advancing_ && time <= now_ ? again_ : queue_;
    if (timer.state != State::kIdle) {
      auto node = queue_of(timer).extract(timer.entry);
      node.key() = time;
      arm(timer, to, to.insert(std::move(node)));
      return SetResult::kRearmed;
    }
    try {
      arm(timer, to, to.emplace(time, &*found));
    } catch (const std::bad_alloc&) {
      return SetResult::kNoMemory;
    }
    return SetResult::kArmed;
  }

  bool cancel(TimerId id) noexcept {
    const Guard guard(lock_);
    const auto found = timers_.find(id.value());
    return found != timers_.end() && disarm(found->second);
  }

  bool destroy(TimerId id) noexcept {
    const Guard guard(lock_);
    const auto found = timers_.find(id.value());
    if (found == timers_.end()) return false;
    disarm(found->second);
    timers_.erase(found);
    return true;
  }

  [[nodiscard]] std::optional<TimePoint> expiry(TimerId id) const noexcept {
    const Guard guard(lock_);
    const auto found = timers_.find(id.value());
    if (found == timers_.end() || found->second.state == State::kIdle) return std::nullopt;
    return found->second.entry->first;
  }
  [[nodiscard]] TimerStats stats() const noexcept {
    const Guard guard(lock_);
    return {timers_.size(), most_, fired_};
  }
  [[nodiscard]] TimePoint now() const noexcept {
    const Guard guard(lock_);
    return now_;
  }

  [[nodiscard]] std::optional<TimePoint> next_expiry() const noexcept {
    const Guard guard(lock_);
    if (again_.empty() && queue_.empty()) return std::nullopt;
    if (again_.empty()) return queue_.begin()->first;
    if (queue_.empty()) return again_.begin()->first;
    return std::min(queue_.begin()->first, again_.begin()->first);
  }

  Progress advance(TimePoint now, std::size_t budget = kNoLimit) noexcept {
    const Guard guard(lock_);
    FREEHOLD_ASSERT(!advancing_);
    if (now > now_) now_ = now;
    Progress progress;
    for (; !again_.empty() && budget > 0; --budget) {
      Timer& timer = again_.begin()->second->second;
      arm(timer, queue_, queue_.insert(again_.extract(again_.begin())));
    }
    advancing_ = true;
    for (; is_due() && budget > 0; --budget, ++progress.fired) fire();
    advancing_ = false;
    fired_ += progress.fired;
    progress.more = is_due() || !again_.empty();
    return progress;
  }

 private:
  struct Timer;
  using Entry = std::pair<const std::uint64_t, Timer>;
  template <class T>
  using Rebound = typename std::allocator_traits<Allocator>::template rebind_alloc<T>;
  using Queue = std::multimap<TimePoint, Entry*, std::less<>, Rebound<std::pair<const TimePoint, Entry*>>>;
  enum class State : std::uint8_t { kIdle, kQueued, kAgain };
  struct Timer {
    Callback callback;
    void* context;
    typename Queue::iterator entry;  // unless idle
    State state;
  };
  using Mutex = typename Locking::Mutex;
  using Guard = sync::Guard<Mutex>;

  [[nodiscard]] Queue& queue_of(const Timer& timer) noexcept { return timer.state == State::kAgain ? again_ : queue_; }
  void arm(Timer& timer, const Queue& queue, typename Queue::iterator entry) noexcept {
    timer.entry = entry;
    timer.state = &queue == &again_ ? State::kAgain : State::kQueued;
  }
  bool disarm(Timer& timer) noexcept {
    if (timer.state == State::kIdle) return false;
    queue_of(timer).erase(timer.entry);
    timer.state = State::kIdle;
    return true;
  }
  [[nodiscard]] bool is_due() const noexcept { return !queue_.empty() && queue_.begin()->first <= now_; }
  void fire() noexcept {
    Entry& first = *queue_.begin()->second;
    disarm(first.second);
    const TimerId id(first.first);
    const Callback callback = first.second.callback;
    void* const context = first.second.context;
    const Unguard<Mutex> callbacks_run_without_the_lock(lock_);
    callback(context, id);
  }

  [[no_unique_address]] mutable Mutex lock_;
  std::uint64_t last_id_ = 0;
  TimePoint now_ = TimePoint::min();
  std::size_t most_ = 0;
  std::uint64_t fired_ = 0;
  bool advancing_ = false;
  std::map<std::uint64_t, Timer, std::less<>, Rebound<Entry>> timers_;
  Queue queue_;
  Queue again_;
};
static_assert(Timers<ContainerTimerQueue<>>);

}  // namespace freehold::timer
