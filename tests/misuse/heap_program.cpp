// SPDX-License-Identifier: MIT
// heap_program KIND: misuses a private heap in one way (kinds.hpp).
#include <cstdlib>
#include <memory>

#include "freehold/heap.hpp"
#include "tests/misuse/blocks.hpp"

namespace freehold::test {
namespace {

template <class Heap>
char* block_in(Heap& heap, std::size_t n) {
  char* const p = another(heap.allocate(n));
  std::memset(p, 1, n);
  return p;
}

template <class Heap, std::size_t kBytes>
void free_twice() {
  Heap heap;
  char* const kept = block_in(heap, kBytes);
  char* const p = block_in(heap, kBytes);
  heap.deallocate(another(p));
  heap.deallocate(another(p));
  heap.deallocate(kept);
}

void free_twice_with_others_between() {
  PrivateHeap heap;
  std::vector<char*> others(500);
  for (char*& other : others) other = block_in(heap, kSmall);
  char* const p = block_in(heap, kSmall);
  heap.deallocate(another(p));
  for (char* other : others) heap.deallocate(other);
  heap.deallocate(another(p));
}

void free_twice_by_another_thread() {
  PrivateHeap heap;
  char* const kept = block_in(heap, kSmall);
  char* const p = block_in(heap, kSmall);
  heap.deallocate(another(p));
  std::thread([&] { heap.deallocate(another(p)); }).join();
  heap.deallocate(kept);
}

void free_sized_twice() {
  PrivateHeap heap;
  char* const kept = block_in(heap, kSmall);
  char* const p = block_in(heap, kSmall);
  heap.deallocate(another(p), kSmall);
  heap.deallocate(another(p), kSmall);
  heap.deallocate(kept, kSmall);
}

void realloc_after_free() {
  PrivateHeap heap;
  char* const kept = block_in(heap, kSmall);
  char* const p = block_in(heap, kSmall);
  heap.deallocate(another(p));
  opaque(heap.reallocate(another(p), kMiddle));
  heap.deallocate(kept);
}

void free_of(void* foreign) {
  PrivateHeap heap;
  char* const kept = block_in(heap, kSmall);
  heap.deallocate(opaque(foreign));
  heap.deallocate(kept);
}

template <std::size_t kBytes>
void free_into_another_heap() {
  PrivateHeap heap, other;
  char* const kept = block_in(other, kBytes);
  other.deallocate(block_in(heap, kBytes));
  other.deallocate(kept);
}

template <std::size_t kBytes, std::size_t kAt>
void free_inside() {
  PrivateHeap heap;
  char* const p = block_in(heap, kBytes);
  heap.deallocate(another(p + kAt));
}

template <std::size_t kBytes, std::size_t kWrong>
void free_with_a_wrong_size() {
  PrivateHeap heap;
  char* const p = block_in(heap, kBytes);
  heap.deallocate(another(p), kWrong);
}

template <std::size_t kBytes, long kAt, std::size_t kCount>
void write_beside() {
  PrivateHeap heap;
  char* const before = block_in(heap, kBytes);
  char* const p = block_in(heap, kBytes);
  char* const after = block_in(heap, kBytes);
  for (std::size_t i = 0; i < kCount; ++i) write(p + kAt + static_cast<long>(i));
  heap.deallocate(before);
  heap.deallocate(p);
  heap.deallocate(after);
}

template <std::size_t kBytes>
void write_after_free() {
  PrivateHeap heap;
  char* const kept = block_in(heap, kBytes);
  char* const p = block_in(heap, kBytes);
  heap.deallocate(another(p));
  write(p);
  for (int i = 0; i < 1000; ++i) heap.deallocate(heap.allocate(kBytes));
  heap.deallocate(kept);
}

template <std::size_t kBytes>
void read_after_free() {
  PrivateHeap heap;
  char* const kept = block_in(heap, kBytes);
  char* const p = block_in(heap, kBytes);
  heap.deallocate(another(p));
  opaque(read(p));
  heap.deallocate(kept);
}

void free_after_release_all() {
  PrivateHeap heap;
  char* const p = block_in(heap, kSmall);
  heap.release_all();
  heap.deallocate(another(p));
}

void free_after_the_heaps_end() {
  auto heap = std::make_unique<PrivateHeap>();
  PrivateHeap* const gone = opaque(heap.get());
  char* const p = block_in(*heap, kSmall);
  heap.reset();
  gone->deallocate(another(p));
}

void write_after_the_heaps_end() {
  auto heap = std::make_unique<PrivateHeap>();
  char* const p = block_in(*heap, kSmall);
  heap.reset();
  write(p);
}

int g_static[100];

constexpr Kind kKinds[] = {
    {"heap_double_free", free_twice<PrivateHeap, kSmall>},
    {"heap_double_free_middle", free_twice<PrivateHeap, 4000>},
    {"heap_double_free_large", free_twice<PrivateHeap, kLarge>},
    {"heap_double_free_sized", free_sized_twice},
    {"heap_double_free_owner_locked", free_twice<OwnerLockedHeap, kSmall>},
    {"heap_double_free_with_others_between", free_twice_with_others_between},
    {"heap_double_free_by_another_thread", free_twice_by_another_thread},
    {"heap_realloc_after_free", realloc_after_free},
    {"heap_free_of_the_stack",
     [] {
       int local[100];
       free_of(&local[0]);
     }},
    {"heap_free_of_static_data", [] { free_of(&g_static[0]); }},
    {"heap_free_of_a_block_of_malloc", [] { free_of(block_of(kSmall)); }},
    {"heap_free_into_another_heap", free_into_another_heap<kSmall>},
    {"heap_free_into_another_heap_large", free_into_another_heap<kLarge>},
    {"heap_free_inside_a_block", free_inside<1000, 16>},
    {"heap_free_of_an_odd_address", free_inside<1000, 1>},
    {"heap_free_inside_a_large_block", free_inside<kLarge, 4096>},
    {"heap_sized_free_as_less", free_with_a_wrong_size<1000, 100>},
    {"heap_sized_free_as_more", free_with_a_wrong_size<100, 1000>},
    {"heap_sized_free_large_as_small", free_with_a_wrong_size<kLarge, 100>},
    {"heap_sized_free_off_by_one", free_with_a_wrong_size<100, 101>},
    {"heap_overflow_by_1", write_beside<kSmall, kSmall, 1>},
    {"heap_overflow_by_16", write_beside<kSmall, kSmall, 16>},
    {"heap_overflow_large_by_1", write_beside<kLarge, kLarge, 1>},
    {"heap_underflow_by_1", write_beside<kSmall, -1, 1>},
    {"heap_underflow_by_16", write_beside<kSmall, -16, 16>},
    {"heap_write_after_free", write_after_free<kSmall>},
    {"heap_write_after_free_large", write_after_free<kLarge>},
    {"heap_read_after_free", read_after_free<kSmall>},
    {"heap_read_after_free_large", read_after_free<kLarge>},
    {"heap_free_after_release_all", free_after_release_all},
    {"heap_free_after_the_heaps_end", free_after_the_heaps_end},
    {"heap_write_after_the_heaps_end", write_after_the_heaps_end},
};

}  // namespace
}  // namespace freehold::test

int main(int argc, char** argv) { return freehold::test::run_kind(argc, argv, {freehold::test::kKinds}); }
