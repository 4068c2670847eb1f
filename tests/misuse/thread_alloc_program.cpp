// SPDX-License-Identifier: MIT
// thread_alloc_program KIND: misuses thread_alloc in one way (kinds.hpp). Linked with each of its two implementations.
#include "freehold/thread_alloc.h"
#include "tests/misuse/blocks.hpp"

namespace freehold::test {
namespace {

void end(void* p) { opaque (&::thread_free)(opaque(p)); }
char* made(std::size_t n) {
  char* const p = another(opaque(&::thread_alloc)(n));
  std::memset(p, 1, n);
  return p;
}

template <std::size_t kBytes>
void free_twice() {
  char* const p = made(kBytes);
  end(p);
  end(p);
}

void free_twice_with_others_between() {
  std::vector<char*> others(500);
  for (char*& other : others) other = made(kSmall);
  char* const p = made(kSmall);
  end(p);
  for (char* other : others) end(other);
  end(p);
}

void free_twice_then_others() {
  free_twice<kSmall>();
  std::vector<char*> others(4000);
  for (char*& other : others) other = made(kSmall);
  for (char* other : others) end(other);
}

void free_twice_by_another_thread() {
  char* const p = made(kSmall);
  end(p);
  std::thread([=] { end(p); }).join();
}

void realloc_after_free() {
  char* const p = made(kSmall);
  end(p);
  opaque(opaque(&::thread_realloc)(another(p), kMiddle));
}

template <std::size_t kBytes, long kAt, std::size_t kCount>
void write_beside() {
  char* const p = made(kBytes);
  for (std::size_t i = 0; i < kCount; ++i) write(p + kAt + static_cast<long>(i));
  end(p);
}

template <std::size_t kBytes>
void write_after_free() {
  char* const p = made(kBytes);
  end(p);
  write(p);
}

int g_static[100];

constexpr Kind kKinds[] = {
    {"thread_alloc_double_free", free_twice<kSmall>},
    {"thread_alloc_double_free_middle", free_twice<kMiddle>},
    {"thread_alloc_double_free_large", free_twice<kLarge>},
    {"thread_alloc_double_free_then_others", free_twice_then_others},
    {"thread_alloc_double_free_with_others_between", free_twice_with_others_between},
    {"thread_alloc_double_free_then_thread_exit", [] { std::thread(free_twice<kSmall>).join(); }},
    {"thread_alloc_double_free_by_another_thread", free_twice_by_another_thread},
    {"thread_alloc_realloc_after_free", realloc_after_free},
    {"thread_alloc_free_of_the_stack",
     [] {
       int local[100];
       end(&local[0]);
     }},
    {"thread_alloc_free_of_static_data", [] { end(&g_static[0]); }},
    {"thread_alloc_free_of_a_block_of_malloc", [] { end(block_of(kSmall)); }},
    {"thread_alloc_free_inside_a_block", [] { end(made(1000) + 16); }},
    {"thread_alloc_free_of_an_odd_address", [] { end(made(kSmall) + 1); }},
    {"thread_alloc_free_inside_a_large_block", [] { end(made(kLarge) + 4096); }},
    {"thread_alloc_overflow_by_1", write_beside<kSmall, kSmall, 1>},
    {"thread_alloc_overflow_by_16", write_beside<kSmall, kSmall, 16>},
    {"thread_alloc_overflow_large_by_1", write_beside<kLarge, kLarge, 1>},
    {"thread_alloc_underflow_by_1", write_beside<kSmall, -1, 1>},
    {"thread_alloc_underflow_by_16", write_beside<kSmall, -16, 16>},
    {"thread_alloc_write_after_free", write_after_free<kSmall>},
    {"thread_alloc_write_after_free_large", write_after_free<kLarge>},
    {"thread_alloc_read_after_free",
     [] {
       char* const p = made(kSmall);
       end(p);
       opaque(read(p));
     }},
};

}  // namespace
}  // namespace freehold::test

int main(int argc, char** argv) { return freehold::test::run_kind(argc, argv, {freehold::test::kKinds}); }
