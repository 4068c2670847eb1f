// SPDX-License-Identifier: MIT
// heap_program KIND: misuses a private heap in one way (kinds.hpp).
#include <memory>

#include "freehold/heap.hpp"
#include "tests/misuse/block_kinds.hpp"

namespace freehold::test {
namespace {

template <class Heap>
struct BlocksOf {
  char* make(std::size_t n) {
    char* const p = another(heap.allocate(n));
    std::memset(p, 1, n);
    return p;
  }
  void end(void* p) { heap.deallocate(opaque(p)); }
  void end(void* p, std::size_t bytes) { heap.deallocate(opaque(p), bytes); }
  void* resize(void* p, std::size_t bytes) { return heap.reallocate(opaque(p), bytes); }

  Heap heap;
};
using Blocks = BlocksOf<PrivateHeap>;
using Any = BlockKinds<Blocks>;

void free_after_release_all() {
  Blocks blocks;
  char* const p = blocks.make(kSmall);
  blocks.heap.release_all();
  blocks.end(p);
}

void free_after_the_heaps_end() {
  auto blocks = std::make_unique<Blocks>();
  Blocks* const gone = opaque(blocks.get());
  char* const p = blocks->make(kSmall);
  blocks.reset();
  gone->end(p);
}

void write_after_the_heaps_end() {
  auto blocks = std::make_unique<Blocks>();
  char* const p = blocks->make(kSmall);
  blocks.reset();
  write(p);
}

constexpr Kind kKinds[] = {
    {"heap_double_free", Any::free_twice<kSmall>},
    {"heap_double_free_middle", Any::free_twice<4000>},
    {"heap_double_free_large", Any::free_twice<kLarge>},
    {"heap_double_free_sized", Any::free_sized_twice},
    {"heap_double_free_owner_locked", BlockKinds<BlocksOf<OwnerLockedHeap>>::free_twice<kSmall>},
    {"heap_double_free_with_others_between", Any::free_twice_with_others_between},
    {"heap_double_free_by_another_thread", Any::free_twice_by_another_thread},
    {"heap_realloc_after_free", Any::realloc_after_free},
    {"heap_free_of_the_stack", Any::free_of_the_stack},
    {"heap_free_of_static_data", Any::free_of_static_data},
    {"heap_free_of_a_block_of_malloc", Any::free_of_a_block_of_malloc},
    {"heap_free_into_another_heap", Any::free_into_another<kSmall>},
    {"heap_free_into_another_heap_large", Any::free_into_another<kLarge>},
    {"heap_free_inside_a_block", Any::free_inside<1000, 16>},
    {"heap_free_of_an_odd_address", Any::free_inside<1000, 1>},
    {"heap_free_inside_a_large_block", Any::free_inside<kLarge, 4096>},
    {"heap_sized_free_as_less", Any::free_with_a_wrong_size<1000, 100>},
    {"heap_sized_free_as_more", Any::free_with_a_wrong_size<100, 1000>},
    {"heap_sized_free_large_as_small", Any::free_with_a_wrong_size<kLarge, 100>},
    {"heap_sized_free_off_by_one", Any::free_with_a_wrong_size<100, 101>},
    {"heap_overflow_by_1", Any::write_beside<kSmall, kSmall, 1>},
    {"heap_overflow_by_16", Any::write_beside<kSmall, kSmall, 16>},
    {"heap_overflow_large_by_1", Any::write_beside<kLarge, kLarge, 1>},
    {"heap_underflow_by_1", Any::write_beside<kSmall, -1, 1>},
    {"heap_underflow_by_16", Any::write_beside<kSmall, -16, 16>},
    {"heap_write_after_free", Any::write_after_free<kSmall>},
    {"heap_write_after_free_large", Any::write_after_free<kLarge>},
    {"heap_read_after_free", Any::read_after_free<kSmall>},
    {"heap_read_after_free_large", Any::read_after_free<kLarge>},
    {"heap_free_after_release_all", free_after_release_all},
    {"heap_free_after_the_heaps_end", free_after_the_heaps_end},
    {"heap_write_after_the_heaps_end", write_after_the_heaps_end},
};

}  // namespace
}  // namespace freehold::test

int main(int argc, char** argv) { return freehold::test::run_kind(argc, argv, {freehold::test::kKinds}); }
