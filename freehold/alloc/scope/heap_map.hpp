// SPDX-License-Identifier: MIT
// Which private heap has an address, by parts of 64 KiB, and how a thread that frees a block there keeps the heap from
// ending.
//
//   HeapMap::Entry* entry = map.find(block);                        // null: no heap was ever there
//   HeapMap::with_heap(mark, *entry, fence, [&](Heap& heap) { ... });  // false: no heap has it
//
// A heap that ends puts all its parts to its successor, fences heavily, and waits until no thread's mark names it: a thread
// that set its mark later has looked at the entry again and found the successor. That is Dekker's protocol with the fence on
// one side only, as in ShardLock. (A hazard pointer.)
//
//   Invariant: while with_heap() calls f(heap), is_used(mark, heap) holds, and the entry had the heap after that was so.
//
// Any thread. find: three loads. with_heap: two stores and three loads. A leaf is mapped with its first entry: 512 KiB of
// address space for 4 GiB, of which the touched pages take memory.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "freehold/os/pages.hpp"
#include "freehold/sync/atomics.hpp"

namespace freehold::alloc {

struct HeapMapOrders {
  // release: pairs with kFind; publishes a table, which the mapping thread alone knows to be zero. The entries need no
  // order: a block's part was put before its pointer was handed out.
  static constexpr std::memory_order kPublish = std::memory_order_release;
  static constexpr std::memory_order kFind = std::memory_order_acquire;
  // release, both: pair with kLook; what the call did is visible to the thread that ends the heap, which may find the mark
  // of the next call only, of another heap.
  static constexpr std::memory_order kLeave = std::memory_order_release;
  static constexpr std::memory_order kMark = std::memory_order_release;
  static constexpr std::memory_order kLook = std::memory_order_acquire;
};

template <class Heap, sync::Atomics A, class Source = os::Pages, class Orders = HeapMapOrders>
class HeapMap {
 public:
  using Entry = typename A::template atomic<Heap*>;
  using Mark = typename A::template atomic<Heap*>;  // of a thread: the heap that it is amid a call of
  static constexpr unsigned kPartShift = 16, kLeafShift = 32, kAddressBits = 47;

  constexpr HeapMap() noexcept = default;

  [[nodiscard]] Entry* find(const void* address) const noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    Place* const root = root_.load(Orders::kFind);
    if (root == nullptr || at >> kAddressBits != 0) return nullptr;
    Entry* const leaf = root[at >> kLeafShift].load(Orders::kFind);
    return leaf == nullptr ? nullptr : &leaf[at >> kPartShift & (kLeafEntries - 1)];
  }
  // The entry of an address, for put(); null: there is no memory.
  [[nodiscard]] Entry* make(const void* address) noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    if (at >> kAddressBits != 0) return nullptr;
    Place* const root = made<Place>(root_, kRootEntries);
    Entry* const leaf = root == nullptr ? nullptr : made<Entry>(root[at >> kLeafShift], kLeafEntries);
    return leaf == nullptr ? nullptr : &leaf[at >> kPartShift & (kLeafEntries - 1)];
  }
  // relaxed, both: see kPublish; and where a heap ends, fenced.
  static void put(Entry& entry, Heap* heap) noexcept { entry.store(heap, std::memory_order_relaxed); }
  [[nodiscard]] static Heap* heap_of(const Entry& entry) noexcept { return entry.load(std::memory_order_relaxed); }

  // Calls f(heap) for the heap that has the entry, which does not end before f returns; the word of a scope is such an
  // entry, too. False: none has it. `mark` is the calling thread's; `fence` orders its store before later loads, as the
  // thread that ends a heap expects.
  template <class Fence, class F>
  [[gnu::always_inline]] static bool with_heap(Mark& mark, const Entry& entry, const Fence& fence, const F& f) noexcept {
    Heap* heap = heap_of(entry);
    if (heap == nullptr) return false;
    Heap* const former = mark.load(std::memory_order_relaxed);  // of a call amid which this one came, by a callback
    for (Heap* marked = nullptr; heap != marked && heap != nullptr; heap = heap_of(entry)) {
      marked = heap;
      mark.store(marked, Orders::kMark);
      fence();
    }
    if (heap != nullptr) [[likely]]
      f(*heap);
    mark.store(former, Orders::kLeave);
    return heap != nullptr;
  }
  [[nodiscard]] static bool is_used(const Mark& mark, const Heap* heap) noexcept { return mark.load(Orders::kLook) == heap; }

 private:
  static constexpr std::size_t kRootEntries = std::size_t{1} << (kAddressBits - kLeafShift),
                               kLeafEntries = std::size_t{1} << (kLeafShift - kPartShift);
  using Place = typename A::template atomic<Entry*>;

  // The table at `place`: ours, or that of a thread that was faster. Its pages read as zero, which is an array of null.
  template <class T>
  [[gnu::noinline]] static T* made(typename A::template atomic<T*>& place, std::size_t entries) noexcept {
    T* table = place.load(Orders::kFind);
    if (table != nullptr) return table;
    Source source;
    void* const memory = source.map(entries * sizeof(T));
    if (memory == nullptr) return nullptr;
    if (place.compare_exchange_strong(table, static_cast<T*>(memory), Orders::kPublish, Orders::kFind))
      return static_cast<T*>(memory);
    source.release(memory, entries * sizeof(T));
    return table;
  }

  typename A::template atomic<Place*> root_{nullptr};
};

}  // namespace freehold::alloc
