// SPDX-License-Identifier: MIT
// Pools, heaps and timers in a program that is compiled without exceptions and run-time type information.
#include <atomic>
#include <functional>
#include <thread>

#include "freehold/heap.hpp"
#include "freehold/pool.hpp"
#include "freehold/timer.hpp"
#include "freehold/timer_queue.hpp"
#include "lab/strategies/registry.hpp"

namespace {

// Its constructor may throw, as far as the compiler knows.
struct Number {
  explicit Number(int value) noexcept(false) : value(value) {}
  int value;
};

template <class T>
bool fires() {
  T timers;
  int fired = 0;
  const auto call = [&] { ++fired; };
  const auto now = freehold::timer::Clock::now();
  timers.set(timers.create(std::ref(call)), now);
  timers.advance(now + std::chrono::seconds(1));
  freehold::timer::OwnedTimer owned(timers, call);
  owned.every(now + std::chrono::seconds(2), std::chrono::seconds(1));
  timers.advance(now + std::chrono::milliseconds(2500));
  return fired == 2 && owned.cancel();
}

bool fires_by_itself() {
  freehold::timer::Driver<> driver;
  std::atomic<bool> fired{false};
  const auto call = [&] { fired = true; };
  driver.set(driver.create(std::ref(call)), freehold::timer::Clock::now());
  while (!fired) std::this_thread::yield();
  return true;
}

}  // namespace

int main() {
  namespace pool = freehold::pool;
  bool sound = true;
  pool::for_each_strategy([&]<class S>() {
    freehold::ObjectPool<Number, pool::NativePool<S>> numbers(4);
    sound &= numbers.make(7)->value == 7;
  });
  freehold::ObjectPool<Number, freehold::SingleThreadPool> numbers(4);
  sound &= numbers.make(7)->value == 7;
  freehold::TrackedPool<Number> tracked(4);
  sound &= tracked.construct(7)->value == 7 && tracked.live() == 1;
  freehold::NodePools<> nodes(4);
  freehold::PoolAllocator<Number> node_allocator(nodes);
  node_allocator.deallocate(node_allocator.allocate(1), 1);
  freehold::heap::PrivateHeap heap;
  sound &= freehold::heap::make_unique<Number>(heap, 7)->value == 7;
  freehold::heap::HeapAllocator<Number> allocator(heap);
  allocator.deallocate(allocator.allocate(3), 3);
  freehold::heap::HeapResource resource(heap), another(heap);
  resource.deallocate(resource.allocate(100), 100);
  sound &= resource.is_equal(resource) && !resource.is_equal(another);
  freehold::CountingResource counted(resource, 1000);
  counted.deallocate(counted.allocate(100), 100);
  sound &= counted.stats().allocations == 1 && counted.stats().live_objects == 0;
  freehold::heap::PrivateHeap second;
  freehold::FallbackHeap both(heap, second);
  sound &= freehold::heap::make_unique<int[]>(both, 3)[2] == 0;
  return sound && fires_by_itself() && fires<freehold::TimerWheel<>>() && fires<freehold::TimerQueue<>>() ? 0 : 1;
}
