// SPDX-License-Identifier: MIT
// Blocks that are never freed, and contents that were never written. A leak ends nothing: the list at exit is what counts,
// against the list of a run that leaks nothing ("leak_of_nothing"). The kinds of contents print what they have read.
#include <new>

#include "tests/misuse/blocks.hpp"

namespace freehold::test {
namespace {

// A thousand blocks of `n` bytes were full of the program's secret, and were freed.
void leave_secrets(std::size_t n) {
  std::vector<char*> blocks(1000);
  for (char*& p : blocks) {
    p = static_cast<char*>(CApi::allocate(n));
    std::memset(p, 0x5e, n);
  }
  for (char* p : blocks) release(p);
}

// Prints "contents: secret", "contents: XX" if all bytes are XX, or "contents: mixed".
void print_contents(const char* p, std::size_t n) {
  std::size_t secret = 0, first = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const auto byte = static_cast<unsigned char>(static_cast<const volatile char*>(p)[i]);
    secret += byte == 0x5e;
    first += byte == static_cast<unsigned char>(p[0]);
  }
  if (secret > n / 4)
    std::puts("contents: secret");
  else if (first == n)
    std::printf("contents: %02x\n", static_cast<unsigned char>(p[0]));
  else
    std::puts("contents: mixed");
}

template <std::size_t kBytes>
void read_uninitialised() {
  leave_secrets(kBytes);
  char* const p = another(CApi::allocate(kBytes));
  print_contents(p, kBytes);
}

template <std::size_t kBytes>
void read_freed_secret() {
  char* const p = static_cast<char*>(CApi::allocate(kBytes));
  std::memset(p, 0x5e, kBytes);
  release(another(p));
  print_contents(another(p), kBytes);
}

// Keeps leaked blocks from being optimised away, and from being reachable.
void leak(std::size_t n) { opaque(CApi::allocate(n)); }

char* g_reachable[5];

constexpr Kind kKinds[] = {
    {"leak_of_nothing", [] {}},
    {"leak_of_nothing_by_a_thread", [] { std::thread([] { release(block_of(100)); }).join(); }},
    {"leak_of_one_block", [] { leak(100); }},
    {"leak_of_a_thousand_blocks",
     [] {
       for (int i = 0; i < 1000; ++i) leak(99);
     }},
    {"leak_of_a_large_block", [] { leak(kLarge); }},
    {"leak_of_a_huge_block", [] { leak(20 * kMiB); }},
    {"leak_of_new", [] { opaque(::operator new(100)), opaque(::operator new[](1000)); }},
    {"leak_of_a_resized_block", [] { opaque(CApi::reallocate(block_of(1000), 77)); }},
    {"leak_of_an_aligned_block", [] { opaque(CApi::allocate_aligned(4096, 100)); }},
    {"leak_by_a_thread_that_ended", [] { std::thread([] { leak(100), leak(100); }).join(); }},
    {"leak_that_a_global_reaches",
     [] {
       for (char*& p : g_reachable) p = block_of(200);
     }},
    {"uninitialised_read_small", read_uninitialised<kSmall>},
    {"uninitialised_read_middle", read_uninitialised<kMiddle>},
    {"uninitialised_read_large", read_uninitialised<kLarge>},
    {"uninitialised_read_new",
     [] {
       leave_secrets(kSmall);
       print_contents(another(::operator new(kSmall)), kSmall);
     }},
    {"freed_secret_small", read_freed_secret<kSmall>},
    {"freed_secret_middle", read_freed_secret<kMiddle>},
};

}  // namespace

Kinds leaks_and_contents() { return kKinds; }

}  // namespace freehold::test
