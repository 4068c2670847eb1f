// SPDX-License-Identifier: MIT
// thread_alloc_program KIND: misuses thread_alloc in one way (kinds.hpp). Linked with each of its two implementations.
#include "freehold/thread_alloc.h"
#include "tests/misuse/block_kinds.hpp"

namespace freehold::test {
namespace {

struct Blocks {
  static constexpr std::size_t kMany = 4000;
  static char* make(std::size_t n) {
    char* const p = another(opaque(&::thread_alloc)(n));
    std::memset(p, 1, n);
    return p;
  }
  static void end(void* p) { opaque (&::thread_free)(opaque(p)); }
  static void* resize(void* p, std::size_t bytes) { return opaque(&::thread_realloc)(opaque(p), bytes); }
};
using Any = BlockKinds<Blocks>;

// The first block of a page, or the only one.
template <std::size_t kBytes, long kAt, std::size_t kCount>
void write_beside() {
  char* const p = Blocks::make(kBytes);
  for (std::size_t i = 0; i < kCount; ++i) write(p + kAt + static_cast<long>(i));
  Blocks::end(p);
}

// It is left at that: with others after it, one of the two implementations would fault.
template <std::size_t kBytes>
void write_after_free() {
  char* const p = Blocks::make(kBytes);
  Blocks::end(p);
  write(p);
}

constexpr Kind kKinds[] = {
    {"thread_alloc_double_free", Any::free_twice<kSmall>},
    {"thread_alloc_double_free_middle", Any::free_twice<kMiddle>},
    {"thread_alloc_double_free_large", Any::free_twice<kLarge>},
    {"thread_alloc_double_free_then_others", Any::free_twice_then_others},
    {"thread_alloc_double_free_with_others_between", Any::free_twice_with_others_between},
    {"thread_alloc_double_free_then_thread_exit", [] { std::thread(Any::free_twice<kSmall>).join(); }},
    {"thread_alloc_double_free_by_another_thread", Any::free_twice_by_another_thread},
    {"thread_alloc_realloc_after_free", Any::realloc_after_free},
    {"thread_alloc_free_of_the_stack", Any::free_of_the_stack},
    {"thread_alloc_free_of_static_data", Any::free_of_static_data},
    {"thread_alloc_free_of_a_block_of_malloc", Any::free_of_a_block_of_malloc},
    {"thread_alloc_free_inside_a_block", Any::free_inside<1000, 16>},
    {"thread_alloc_free_of_an_odd_address", Any::free_inside<kSmall, 1>},
    {"thread_alloc_free_inside_a_large_block", Any::free_inside<kLarge, 4096>},
    {"thread_alloc_overflow_by_1", write_beside<kSmall, kSmall, 1>},
    {"thread_alloc_overflow_by_16", write_beside<kSmall, kSmall, 16>},
    {"thread_alloc_overflow_large_by_1", write_beside<kLarge, kLarge, 1>},
    {"thread_alloc_underflow_by_1", write_beside<kSmall, -1, 1>},
    {"thread_alloc_underflow_by_16", write_beside<kSmall, -16, 16>},
    {"thread_alloc_write_after_free", write_after_free<kSmall>},
    {"thread_alloc_write_after_free_large", write_after_free<kLarge>},
    {"thread_alloc_read_after_free", Any::read_after_free<kSmall>},
};

}  // namespace
}  // namespace freehold::test

int main(int argc, char** argv) { return freehold::test::run_kind(argc, argv, {freehold::test::kKinds}); }
