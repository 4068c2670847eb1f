// SPDX-License-Identifier: MIT
// The timer queue of "Practical testing 30: reducing contention" (Len Holgate) with the author's own containers. A map leads
// from times to pairs, each a count and a deque of the timers that are armed for that time. A second map leads from handles
// to places in the first. The data of each timer lies in a separate block. All of it comes from one allocator, unless the
// blocks that are no container's get another: with std::allocator from the program's heap, so that the queue contends with
// all users of that; on a private heap it contends with its own users only. Two things differ from the author's: handles are
// numbers, not addresses, so that the handle of a destroyed timer is recognised; and a timer that a callback sets to a time
// that has come waits for the next advance(), as in every structure here.
//
//   Invariant: a timer is armed if and only if its handle has a place, and the deque there points at it. The count of a pair
//   is the number of timers in its deque, never zero; the deque keeps null for those that were cancelled or have fired.
//
// Threads: as the policy says, by one lock, which is not held while a callback runs.
// Cost: create, set, cancel, destroy O(log n); create() allocates twice, set() three times or more for a time that no other
// timer has. Errors: none thrown; what the allocator refuses is none or kNoMemory, and an armed timer then keeps its former
// time.
#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "freehold/base/check.hpp"
#include "freehold/sync/lock.hpp"
#include "freehold/timer/locking.hpp"
#include "freehold/timer/timer.hpp"

namespace freehold::timer {

// Its functions are those of Timers (freehold/timer/timer.hpp). `Allocator`: where the containers' nodes come from;
// `Objects`: where the timers' data and the pairs come from.
template <class Allocator = std::allocator<std::byte>, class Locking = SingleThreaded, class Objects = Allocator>
class DequeTimerQueue {
 public:
  static constexpr bool kShared = Locking::kShared;

  DequeTimerQueue() : DequeTimerQueue(Allocator()) {}
  explicit DequeTimerQueue(const Allocator& allocator)
    requires std::same_as<Allocator, Objects>
      : DequeTimerQueue(allocator, allocator) {}
  DequeTimerQueue(const Allocator& allocator, const Objects& objects)
      : allocator_(allocator),
        objects_(objects),
        handles_(allocator),
        queue_(allocator),
        past_{Queue(allocator), Queue(allocator)} {}
  DequeTimerQueue(const DequeTimerQueue&) = delete;
  DequeTimerQueue& operator=(const DequeTimerQueue&) = delete;
  ~DequeTimerQueue() {
    for (auto& [id, entry] : handles_) {
      disarm(entry);
      destroy_at(entry.data);
    }
  }

  [[nodiscard]] TimerId create(Callback callback) noexcept {
    const Guard guard(lock_);
    Data* data = nullptr;
    try {
      data = make<Data>(callback);
      handles_.try_emplace(handles_.end(), last_id_ + 1, Entry{data, {}});
    } catch (const std::bad_alloc&) {
      if (data != nullptr) destroy_at(data);
      return {};
    }
    most_ = std::max(most_, handles_.size());
    return TimerId(++last_id_);
  }

  SetResult set(TimerId id, TimePoint time) noexcept {
    const Guard guard(lock_);
    const auto found = handles_.find(id.value());
    if (found == handles_.end()) return SetResult::kNoTimer;
    Entry& entry = found->second;
    Place place;
    try {
      place = put(advancing_ && time <= now_ ? past_[turn_ ^ 1] : queue_, time, *found);
    } catch (const std::bad_alloc&) {
      return SetResult::kNoMemory;
    }
    const bool was_armed = disarm(entry);
    entry.place = place;
    return was_armed ? SetResult::kRearmed : SetResult::kArmed;
  }

  bool cancel(TimerId id) noexcept {
    const Guard guard(lock_);
    const auto found = handles_.find(id.value());
    return found != handles_.end() && disarm(found->second);
  }

  bool destroy(TimerId id) noexcept {
    const Guard guard(lock_);
    const auto found = handles_.find(id.value());
    if (found == handles_.end()) return false;
    disarm(found->second);
    destroy_at(found->second.data);
    handles_.erase(found);
    return true;
  }

  [[nodiscard]] std::optional<TimePoint> expiry(TimerId id) const noexcept {
    const Guard guard(lock_);
    const auto found = handles_.find(id.value());
    if (found == handles_.end() || found->second.place.queue == nullptr) return std::nullopt;
    return found->second.place.time->first;
  }
  [[nodiscard]] TimerStats stats() const noexcept {
    const Guard guard(lock_);
    return {handles_.size(), most_, fired_};
  }
  [[nodiscard]] TimePoint now() const noexcept {
    const Guard guard(lock_);
    return now_;
  }

  [[nodiscard]] std::optional<TimePoint> next_expiry() const noexcept {
    const Guard guard(lock_);
    std::optional<TimePoint> earliest;
    for (const Queue* const queue : {&queue_, &past_[0], &past_[1]}) {
      if (!queue->empty()) earliest = std::min(earliest.value_or(TimePoint::max()), queue->begin()->first);
    }
    return earliest;
  }

  Progress advance(TimePoint now, std::size_t budget = SIZE_MAX) noexcept {
    const Guard guard(lock_);
    FREEHOLD_ASSERT(!advancing_ && budget > 0);
    if (now > now_) now_ = now;
    if (past_[turn_].empty()) turn_ ^= 1;
    Progress progress;
    advancing_ = true;
    for (Queue* queue = due(); queue != nullptr && budget > 0; --budget, queue = due()) progress.fired += step(*queue);
    advancing_ = false;
    fired_ += progress.fired;
    progress.more = due() != nullptr || !past_[turn_ ^ 1].empty();
    return progress;
  }

 private:
  template <class T>
  using Rebound = typename std::allocator_traits<Allocator>::template rebind_alloc<T>;
  template <class T>
  using ObjectsOf = typename std::allocator_traits<Objects>::template rebind_alloc<T>;
  struct Data {
    Callback callback;
  };
  struct Entry;
  using Handle = std::pair<const std::uint64_t, Entry>;
  struct AtThisTime {
    explicit AtThisTime(const Allocator& allocator) : timers(Rebound<Handle*>(allocator)) {}
    std::size_t armed = 0;
    std::size_t first = 0;  // all before it in the deque are null
    std::deque<Handle*, Rebound<Handle*>> timers;
  };
  using Queue = std::map<TimePoint, AtThisTime*, std::less<>, Rebound<std::pair<const TimePoint, AtThisTime*>>>;
  struct Place {
    Queue* queue = nullptr;  // null: not armed
    typename Queue::iterator time;
    std::size_t index = 0;
  };
  struct Entry {
    Data* data;
    Place place;
  };
  using Mutex = typename Locking::Mutex;
  using Guard = sync::Guard<Mutex>;

  template <class T, class... Args>
  [[nodiscard]] T* make(Args&&... args) {
    ObjectsOf<T> allocator(objects_);
    T* const memory = std::allocator_traits<ObjectsOf<T>>::allocate(allocator, 1);
    try {
      return std::construct_at(memory, std::forward<Args>(args)...);
    } catch (...) {
      std::allocator_traits<ObjectsOf<T>>::deallocate(allocator, memory, 1);
      throw;
    }
  }
  template <class T>
  void destroy_at(T* object) noexcept {
    ObjectsOf<T> allocator(objects_);
    std::destroy_at(object);
    std::allocator_traits<ObjectsOf<T>>::deallocate(allocator, object, 1);
  }

  // Throws std::bad_alloc; then nothing has changed.
  [[nodiscard]] Place put(Queue& queue, TimePoint time, Handle& handle) {
    const auto [at, is_new] = queue.try_emplace(time, nullptr);
    try {
      if (is_new) at->second = make<AtThisTime>(allocator_);
      at->second->timers.push_back(&handle);
    } catch (...) {
      if (is_new) {
        if (at->second != nullptr) destroy_at(at->second);
        queue.erase(at);
      }
      throw;
    }
    ++at->second->armed;
    return {&queue, at, at->second->timers.size() - 1};
  }
  // Returns whether it was armed.
  bool disarm(Entry& entry) noexcept {
    const Place place = std::exchange(entry.place, {});
    if (place.queue == nullptr) return false;
    AtThisTime* const pair = place.time->second;
    pair->timers[place.index] = nullptr;
    if (--pair->armed == 0) {
      destroy_at(pair);
      place.queue->erase(place.time);
    }
    return true;
  }

  // A queue with something that is due; null: none.
  [[nodiscard]] Queue* due() noexcept {
    if (!past_[turn_].empty()) return &past_[turn_];
    return !queue_.empty() && queue_.begin()->first <= now_ ? &queue_ : nullptr;
  }
  // Looks at one place of the earliest deque. Returns how many timers fired.
  std::size_t step(Queue& queue) noexcept {
    AtThisTime& pair = *queue.begin()->second;
    Handle* const handle = pair.timers[pair.first++];
    if (handle == nullptr) return 0;
    disarm(handle->second);
    const TimerId id(handle->first);
    const Data data = *handle->second.data;
    const Unguard<Mutex> callbacks_run_without_the_lock(lock_);
    data.callback(id);
    return 1;
  }

  [[no_unique_address]] mutable Mutex lock_;
  [[no_unique_address]] Allocator allocator_;
  [[no_unique_address]] Objects objects_;
  std::uint64_t last_id_ = 0;
  TimePoint now_ = TimePoint::min();
  std::size_t most_ = 0;
  std::uint64_t fired_ = 0;
  bool advancing_ = false;
  std::uint8_t turn_ = 0;  // index in past_ of what advance() calls; the other takes timers set to times that have come
  std::map<std::uint64_t, Entry, std::less<>, Rebound<Handle>> handles_;
  Queue queue_;
  Queue past_[2];
};
static_assert(Timers<DequeTimerQueue<>>);

}  // namespace freehold::timer
