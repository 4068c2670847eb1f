// SPDX-License-Identifier: MIT
// free, realloc and malloc_usable_size of what no allocation returned.
#include <sys/mman.h>

#include <atomic>
#include <new>
#include <string>

#include "tests/misuse/blocks.hpp"

namespace freehold::test {
namespace {

alignas(16) int g_static[100];
alignas(16) thread_local char t_local[64];

void* mapped(std::size_t bytes) {
  return ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

// Commits it while three threads allocate and free.
void while_others_allocate(void (*commit)()) {
  std::atomic<bool> stops{false};
  std::atomic<int> running{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      running.fetch_add(1);
      while (!stops.load())
        for (std::size_t n = 16; n < 4000; n += 100) release(CApi::allocate(n));
    });
  while (running.load() < 3) std::this_thread::yield();
  commit();
  stops.store(true);
  for (std::thread& thread : threads) thread.join();
}

// An array with a destructor begins behind the number of its elements.
struct Counted {
  ~Counted() { asm volatile("" : : "r"(this) : "memory"); }
  long value = 0;
};

void free_unmapped() {
  void* p = mapped(kMiB);
  ::munmap(p, kMiB);
  release(another(p));
}

void realloc_of(void* p) { static_cast<void>(CApi::reallocate(p, kKiB)); }

constexpr Kind kKinds[] = {
    // foreign
    {"free_of_the_stack",
     [] {
       int local[100];
       release(opaque(&local[0]));
     }},
    {"free_of_static_data", [] { release(opaque(&g_static[0])); }},
    {"free_of_thread_local_data", [] { release(opaque(&t_local[0])); }},
    {"free_of_a_literal", [] { release(const_cast<char*>(opaque("a literal of the program"))); }},
    {"free_of_code", [] { release(reinterpret_cast<void*>(opaque(&while_others_allocate))); }},
    {"free_of_mapped_memory", [] { release(mapped(kMiB)); }},
    {"free_of_unmapped_memory", free_unmapped},
    {"free_of_a_small_number", [] { release(reinterpret_cast<void*>(opaque<std::uintptr_t>(0x40))); }},
    {"free_of_the_last_address", [] { release(reinterpret_cast<void*>(opaque<std::uintptr_t>(~std::uintptr_t{15}))); }},
    {"free_of_no_address", [] { release(reinterpret_cast<void*>(opaque<std::uintptr_t>(0xdeadbeefdeadbee0))); }},
    {"free_of_static_data_while_others_allocate", [] { while_others_allocate([] { release(opaque(&g_static[0])); }); }},
    {"delete_of_static_data", [] { ::operator delete(opaque(static_cast<void*>(&g_static[0]))); }},
    {"realloc_of_the_stack",
     [] {
       int local[100];
       static_cast<void>(CApi::reallocate(opaque(&local[0]), 1000));
     }},
    {"realloc_of_static_data", [] { realloc_of(opaque(&g_static[0])); }},
    {"realloc_of_mapped_memory", [] { realloc_of(mapped(kMiB)); }},
    {"usable_size_of_static_data", [] { opaque(CApi::usable_size(opaque(&g_static[0]))); }},
    // the middle of a block
    {"free_inside_a_run", [] { release(block_of(200 * kKiB) + 4096); }},
    {"free_inside_a_run_at_a_span", [] { release(block_of(400 * kKiB) + 64 * kKiB); }},
    {"free_inside_a_large_block", [] { release(block_of(20 * kMiB) + 10 * kMiB); }},
    {"free_inside_a_small_block", [] { release(block_of(1000) + 16), CApi::trim(); }},
    {"free_of_an_odd_address", [] { release(block_of(1000) + 1), CApi::trim(); }},
    {"free_inside_at_8", [] { release(block_of(kSmall) + 8); }},
    {"free_inside_at_64", [] { release(block_of(kMiddle) + 64); }},
    {"free_inside_an_aligned_block", [] { release(another(CApi::allocate_aligned(256, kKiB)) + 256); }},
    {"free_inside_while_others_allocate", [] { while_others_allocate([] { release(block_of(kSmall) + 16); }); }},
    {"free_of_an_advanced_string",
     [] {
       char* text = another(::strdup("   three blanks before it"));
       while (*text == ' ') ++text;
       release(text);
     }},
    {"delete_inside_a_block", [] { ::operator delete(another(::operator new(1000)) + 32); }},
    {"delete_of_an_array_with_a_count",
     [] {
       auto* array = opaque(new Counted[10]);
       ::operator delete(opaque(static_cast<void*>(array)));
     }},
    {"realloc_inside_a_run", [] { static_cast<void>(CApi::reallocate(block_of(200 * kKiB) + 4096, kMiB)); }},
    {"realloc_inside_a_small_block", [] { realloc_of(block_of(1000) + 16); }},
    {"realloc_of_an_odd_address", [] { realloc_of(block_of(1000) + 3); }},
    {"realloc_inside_a_large_block", [] { realloc_of(block_of(20 * kMiB) + 10 * kMiB); }},
    {"usable_size_inside_a_block", [] { opaque(CApi::usable_size(block_of(1000) + 16)); }},
    // beside a block
    {"free_16_before_a_block", [] { release(block_of(kSmall) - 16); }},
    {"free_of_the_end_of_a_block", [] { release(block_of(96) + 96); }},
    {"free_of_memory_never_handed_out", [] { release(block_of(kSmall) + 40 * 112); }},
    // before anything else is freed
    {"free_inside_seen_at_the_call", [] { release(block_of(1000) + 16), end_here(); }},
    {"free_of_an_odd_address_seen_at_the_call", [] { release(block_of(kMiddle) + 1), end_here(); }},
    {"free_of_memory_never_handed_out_seen_at_the_call", [] { release(block_of(kSmall) + 400 * 112), end_here(); }},
};

}  // namespace

Kinds bad_pointers() { return kKinds; }

}  // namespace freehold::test
