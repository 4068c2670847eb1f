// SPDX-License-Identifier: MIT
// Two subsystems with memory of their own. An order book keeps its orders in a heap that its own lock guards, and drops a
// day's orders at once; an index that threads share is in a heap that any of them may use.
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory_resource>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "freehold/heap.hpp"

namespace heap = freehold::heap;

class OrderBook {
 public:
  void add(long number, long amount) {
    const std::lock_guard guard(mutex_);  // guards the orders, and so their memory
    orders_->emplace(number, amount);
  }
  long end_day() {
    const std::lock_guard guard(mutex_);
    long sum = 0;
    for (const auto& [number, amount] : *orders_) sum += amount;
    heap_.release_all();  // ends the map with all its nodes, however many there are, by a call for each 64 KiB
    orders_ = make_orders();
    return sum;
  }
  std::uint64_t live() {
    const std::lock_guard guard(mutex_);
    return heap_.stats().live_objects;
  }

 private:
  using Allocator = heap::HeapAllocator<std::pair<const long, long>, heap::OwnerLockedHeap>;
  using Orders = std::map<long, long, std::less<>, Allocator>;

  // The map itself is in the heap, too: it is never destroyed.
  Orders* make_orders() { return ::new (heap_.allocate(sizeof(Orders), alignof(Orders))) Orders(Allocator(heap_)); }

  std::mutex mutex_;
  heap::OwnerLockedHeap heap_{{.name = "orders"}};
  Orders* orders_ = make_orders();
};

int main() {
  OrderBook book;
  long sum = 0;
  for (int day = 0; day < 3; ++day) {
    for (long i = 1; i <= 100'000; ++i) book.add(i, i);
    sum += book.end_day();
  }

  heap::PrivateHeap words_heap({.name = "words", .limit_bytes = std::size_t{64} << 20});
  heap::HeapResource words_memory(words_heap);
  std::size_t letters = 0;
  {
    std::pmr::vector<std::pmr::string> words(10'000, &words_memory);
    const auto fill = [&](std::size_t first) {
      for (std::size_t i = first; i < words.size(); i += 2) words[i].assign(20 + i % 100, 'x');
    };
    std::thread even(fill, 0), odd(fill, 1);
    even.join();
    odd.join();
    for (const auto& word : words) letters += word.size();
  }
  std::printf("orders %ld, %llu left; letters %zu, %llu left\n", sum, static_cast<unsigned long long>(book.live()), letters,
              static_cast<unsigned long long>(words_heap.stats().live_objects));
}
