// SPDX-License-Identifier: MIT
// malloc_program KIND: misuses malloc in one way. If the process is not ended for it, prints "still alive" and exits with 0.
#include <pthread.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/active_malloc.hpp"
#include "tests/support/c_api.hpp"

namespace freehold::test {
namespace {

constexpr std::size_t kKiB = 1024, kMiB = 1024 * kKiB;

void release(void* p) { CApi::deallocate(p); }
char* block_of(std::size_t n) {
  auto* p = static_cast<char*>(CApi::allocate(n));
  std::memset(p, 1, n);
  return p;
}

// A block that is freed twice lies in a cache until that is drained; the drain sees that the slot is free already.
void drain_by_frees(std::size_t n) {
  std::vector<void*> others(4000);
  for (void*& p : others) p = CApi::allocate(n);
  for (void* p : others) release(p);
}

// Frees `n` bytes twice, so that no allocation between can be given the block.
void free_twice(std::size_t n) {
  char* p = block_of(n);
  release(p);
  release(p);
}

int g_static[100];

const std::map<std::string, void (*)()>& kinds_of_misuse() {
  static const std::map<std::string, void (*)()> all = {
      // no misuse: the control
      {"none", [] { drain_by_frees(100), CApi::trim(); }},
      // double free
      {"double_free_then_trim", [] { free_twice(100), CApi::trim(); }},
      {"double_free_of_another_size_then_trim", [] { free_twice(3000), CApi::trim(); }},
      {"double_free_then_thread_exit", [] { std::thread([] { free_twice(100); }).join(); }},
      {"double_free_then_more_frees",
       [] {
         std::vector<void*> others(4000);
         for (void*& p : others) p = CApi::allocate(100);
         free_twice(100);
         for (void* p : others) release(p);
       }},
      {"double_free_by_two_threads",
       [] {
         char* p = block_of(100);
         std::thread([=] { release(p); }).join();
         std::thread([=] { release(p); }).join();
       }},
      {"double_free_after_drain",
       [] {
         char* p = block_of(100);
         char* neighbour = block_of(100);
         release(p);
         CApi::trim();
         release(p);
         CApi::trim();
         release(neighbour);
       }},
      {"double_free_after_all_was_given_back",
       [] {
         std::vector<char*> blocks(20000);
         for (char*& p : blocks) p = block_of(3000);
         for (char* p : blocks) release(p);
         CApi::trim();
         for (char* p : blocks) release(p);
         CApi::trim();
       }},
      {"double_free_of_a_run", [] { free_twice(200 * kKiB); }},
      {"double_free_of_a_large_block", [] { free_twice(20 * kMiB); }},
      {"double_free_of_a_run_beside_others",
       [] {
         char* before = block_of(200 * kKiB);
         char* p = block_of(200 * kKiB);
         char* after = block_of(200 * kKiB);
         release(p);
         release(before);
         release(after);
         release(p);
       }},
      // foreign pointers
      {"free_of_the_stack",
       [] {
         int local[100];
         release(opaque(&local[0]));
       }},
      {"free_of_static_data", [] { release(opaque(&g_static[0])); }},
      {"free_of_code", [] { release(reinterpret_cast<void*>(opaque(&drain_by_frees))); }},
      {"free_of_mapped_memory",
       [] { release(::mmap(nullptr, kMiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)); }},
      {"free_of_a_small_number", [] { release(reinterpret_cast<void*>(opaque<std::uintptr_t>(0x40))); }},
      {"free_of_the_last_address", [] { release(reinterpret_cast<void*>(opaque<std::uintptr_t>(~std::uintptr_t{15}))); }},
      {"realloc_of_the_stack",
       [] {
         int local[100];
         static_cast<void>(CApi::reallocate(opaque(&local[0]), 1000));
       }},
      {"delete_of_static_data", [] { ::operator delete(opaque(static_cast<void*>(&g_static[0]))); }},
      // interior pointers
      {"free_inside_a_run", [] { release(block_of(200 * kKiB) + 4096); }},
      {"free_inside_a_run_at_a_span", [] { release(block_of(400 * kKiB) + 64 * kKiB); }},
      {"free_inside_a_large_block", [] { release(block_of(20 * kMiB) + 10 * kMiB); }},
      {"free_inside_a_small_block", [] { release(block_of(1000) + 16), CApi::trim(); }},
      {"free_of_an_odd_address", [] { release(block_of(1000) + 1), CApi::trim(); }},
      {"realloc_inside_a_run", [] { static_cast<void>(CApi::reallocate(block_of(200 * kKiB) + 4096, kMiB)); }},
  };
  return all;
}

}  // namespace
}  // namespace freehold::test

int main(int argc, char** argv) {
  using namespace freehold::test;
  if (freehold_is_expected() && !freehold_answers()) return 3;
  const auto found = argc == 2 ? kinds_of_misuse().find(argv[1]) : kinds_of_misuse().end();
  if (found == kinds_of_misuse().end()) return 2;
  found->second();
  std::puts("still alive");
  return 0;
}
