// SPDX-License-Identifier: MIT
// A timer queue of standard containers on a private heap, as in "Practical testing 30: reducing contention": who uses the
// queue contends with its other users alone, not with all who use malloc. The article gave each container an allocator.
// Here the containers stay as they are.
#include <cstdio>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

#include "freehold/heap_scope.hpp"

namespace {

// Plain code.
class Queue {
 public:
  using Callback = std::function<void()>;

  int set(long time, Callback callback) {
    due_[time].push_back(++last_);
    timers_.emplace(last_, std::move(callback));
    return last_;
  }
  bool cancel(int timer) { return timers_.erase(timer) != 0; }
  std::deque<Callback> take(long now) {
    std::deque<Callback> taken;
    for (; !due_.empty() && due_.begin()->first <= now; due_.erase(due_.begin())) {
      for (const int timer : due_.begin()->second)
        if (const auto found = timers_.extract(timer)) taken.push_back(std::move(found.mapped()));
    }
    return taken;
  }

 private:
  std::map<long, std::deque<int>> due_;
  std::map<int, Callback> timers_;
  int last_ = 0;
};

// The queue with its lock and its heap.
class Timers {
 public:
  int set(long time, Queue::Callback callback) {
    const std::lock_guard guard(mutex_);
    const freehold::HeapScope scope(heap_);  // this thread, until the end of the function
    return queue_.set(time, std::move(callback));
  }
  bool cancel(int timer) {
    const std::lock_guard guard(mutex_);
    return queue_.cancel(timer);  // what is freed finds its heap by itself
  }
  // The callbacks run without the lock, and out of the scope: what they allocate is not the queue's.
  void advance(long now) {
    for (const auto& callback : take(now)) callback();
  }
  [[nodiscard]] unsigned long long blocks() { return heap_.stats().live_objects; }

 private:
  std::deque<Queue::Callback> take(long now) {
    const std::lock_guard guard(mutex_);
    const freehold::HeapScope scope(heap_);
    return queue_.take(now);
  }

  freehold::PrivateHeap heap_{{.name = "timers"}};  // before what lies in it
  std::mutex mutex_;
  Queue queue_;
};

}  // namespace

int main() {
  Timers timers;
  int fired = 0, cancelled = 0;
  for (int i = 1; i <= 100'000; ++i) {
    const int timer = timers.set(i / 100, [&fired] { ++fired; });
    if (i % 10 != 0) cancelled += timers.cancel(timer);
  }
  const auto blocks = timers.blocks();
  timers.advance(1000);
  std::printf("%d cancelled, %d fired; %llu blocks, then %llu\n", cancelled, fired, blocks, timers.blocks());
}
