// SPDX-License-Identifier: MIT
// The timer wheel of "Practical testing" (Len Holgate), for the measurement of its memory, the subject of article 30 of that
// series. It has one ring of slots that covers every possible time-out, linked timers, a set of handles for validation, and
// a block for each timer's data. Set and cancel look a handle up and allocate nothing; create and destroy allocate and free
// two blocks. A time beyond the ring is refused.
//
// Threads: as the policy says, by one lock, which is not held while a callback runs.
#pragma once
#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "freehold/timer/locking.hpp"
#include "freehold/timer/timer.hpp"

namespace freehold::lab::timers {

template <class Allocator, class Locking, class Objects = Allocator>
class ArticleWheel {
 public:
  // A tick as coarse as the clock of the author's system, and a ring for what the loops set: the second hour from now on.
  static constexpr std::chrono::milliseconds kTick{16};
  static constexpr std::chrono::hours kMost{3};

  explicit ArticleWheel(const Allocator& allocator = Allocator())
    requires std::same_as<Allocator, Objects>
      : ArticleWheel(allocator, allocator) {}
  // `objects`: where the timers' data come from.
  ArticleWheel(const Allocator& allocator, const Objects& objects)
      : objects_(objects), handles_(allocator), slots_(kSlots, nullptr) {}
  ArticleWheel(const ArticleWheel&) = delete;
  ArticleWheel& operator=(const ArticleWheel&) = delete;
  ~ArticleWheel() {
    for (Data* const data : handles_) destroy_at(data);
  }

  [[nodiscard]] timer::TimerId create(timer::Callback callback) {
    const Guard guard(lock_);
    ObjectsOf allocator(objects_);
    Data* const data = std::construct_at(Traits::allocate(allocator, 1), Data{callback, nullptr, nullptr});
    handles_.insert(data);
    return timer::TimerId(reinterpret_cast<std::uintptr_t>(data));
  }

  timer::SetResult set(timer::TimerId id, timer::TimePoint time) noexcept {
    const Guard guard(lock_);
    Data* const data = find(id);
    const std::uint64_t tick = std::max(ticks_of(time + kTick - timer::Clock::duration(1)), position_ + 1);
    if (data == nullptr || tick - position_ >= kSlots) return timer::SetResult::kNoTimer;
    const bool was_armed = unlink(*data);
    Data*& slot = slots_[tick % kSlots];
    data->next = slot;
    data->link = &slot;
    if (slot != nullptr) slot->link = &data->next;
    slot = data;
    return was_armed ? timer::SetResult::kRearmed : timer::SetResult::kArmed;
  }
  bool cancel(timer::TimerId id) noexcept {
    const Guard guard(lock_);
    Data* const data = find(id);
    return data != nullptr && unlink(*data);
  }
  bool destroy(timer::TimerId id) noexcept {
    const Guard guard(lock_);
    Data* const data = find(id);
    if (data == nullptr) return false;
    unlink(*data);
    handles_.erase(data);
    destroy_at(data);
    return true;
  }
  // Slot by slot. Pre: time goes on, by less than the ring.
  void advance(timer::TimePoint now) noexcept {
    const Guard guard(lock_);
    const std::uint64_t target = ticks_of(now);
    while (position_ < target) {
      ++position_;
      while (Data* const data = slots_[position_ % kSlots]) {
        unlink(*data);
        const Data copy = *data;
        const timer::Unguard<Mutex> callbacks_run_without_the_lock(lock_);
        copy.callback(timer::TimerId(reinterpret_cast<std::uintptr_t>(data)));
      }
    }
  }

 private:
  struct Data {
    timer::Callback callback;
    Data* next;
    Data** link;  // the pointer to it: a slot, or another's next; null: not armed
  };
  template <class T>
  using Rebound = typename std::allocator_traits<Allocator>::template rebind_alloc<T>;
  using ObjectsOf = typename std::allocator_traits<Objects>::template rebind_alloc<Data>;
  using Traits = std::allocator_traits<ObjectsOf>;
  using Mutex = typename Locking::Mutex;
  using Guard = std::lock_guard<Mutex>;
  static constexpr std::uint64_t kSlots = std::chrono::nanoseconds(kMost) / std::chrono::nanoseconds(kTick);

  [[nodiscard]] static std::uint64_t ticks_of(timer::TimePoint time) noexcept {
    return static_cast<std::uint64_t>(time.time_since_epoch() / std::chrono::nanoseconds(kTick));
  }
  // Null: there is no such timer.
  [[nodiscard]] Data* find(timer::TimerId id) const noexcept {
    Data* const data = reinterpret_cast<Data*>(static_cast<std::uintptr_t>(id.value()));
    return handles_.contains(data) ? data : nullptr;
  }
  // Returns whether it was armed.
  static bool unlink(Data& data) noexcept {
    if (data.link == nullptr) return false;
    *data.link = data.next;
    if (data.next != nullptr) data.next->link = data.link;
    data.link = nullptr;
    return true;
  }
  void destroy_at(Data* data) noexcept {
    ObjectsOf allocator(objects_);
    Traits::deallocate(allocator, data, 1);
  }

  [[no_unique_address]] Mutex lock_;
  [[no_unique_address]] Objects objects_;
  std::set<Data*, std::less<>, Rebound<Data*>> handles_;
  std::vector<Data*> slots_;
  std::uint64_t position_ = 0;
};

}  // namespace freehold::lab::timers
