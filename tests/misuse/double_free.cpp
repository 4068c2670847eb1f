// SPDX-License-Identifier: MIT
// Blocks that are freed twice.
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <new>

#include "tests/misuse/blocks.hpp"

namespace freehold::test {
namespace {

// A block that is freed twice may lie in a cache until that is drained; the drain sees that the slot is free already.
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

void free_twice_after_drain() {
  char* p = block_of(100);
  char* neighbour = block_of(100);
  release(p);
  CApi::trim();
  release(p);
  CApi::trim();
  release(neighbour);
}

void free_twice_after_all_was_given_back() {
  std::vector<char*> blocks(20000);
  for (char*& p : blocks) p = block_of(3000);
  for (char* p : blocks) release(p);
  CApi::trim();
  for (char* p : blocks) release(p);
  CApi::trim();
}

void free_twice_beside_others(std::size_t n) {
  char* before = block_of(n);
  char* p = block_of(n);
  char* after = block_of(n);
  release(p);
  release(before);
  release(after);
  release(p);
}

// The classic one that defeats a check of the last freed block only.
void free_a_b_a() {
  char* a = block_of(kSmall);
  char* b = block_of(kSmall);
  release(a);
  release(b);
  release(a);
}

void free_twice_with_frees_between() {
  std::vector<char*> others(200);
  for (char*& p : others) p = block_of(kSmall);
  char* p = block_of(kSmall);
  release(p);
  for (char* other : others) release(other);
  release(p);
}

// Between the two frees somebody else asks for blocks of the same size: where freed blocks are handed out at once, the
// second free is that of the other's block, and the other's own free is one too many.
void free_twice_after_reuse() {
  char* p = block_of(kSmall);
  release(p);
  std::vector<char*> others(8);
  for (char*& other : others) other = block_of(kSmall);
  release(p);
  for (char* other : others) release(other);
}

void free_twice_with_a_thread_that_reuses() {
  char* p = block_of(kSmall);
  release(p);
  std::thread([] {
    for (int i = 0; i < 1000; ++i) release(block_of(kSmall));
  }).join();
  release(p);
}

void free_by_two_threads_at_once() {
  char* p = block_of(kSmall);
  std::atomic<int> ready{0};
  const auto free_it = [&] {
    ready.fetch_add(1);
    while (ready.load() < 2) {
    }
    release(p);
  };
  std::thread other(free_it);
  free_it();
  other.join();
}

void free_in_parent_and_child() {
  char* p = block_of(kSmall);
  release(p);
  const pid_t child = ::fork();
  if (child == 0) {
    release(p);
    std::exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) {  // ends as the child did, which has said why
    ::signal(WTERMSIG(status), SIG_DFL);
    ::raise(WTERMSIG(status));
  }
}

char* g_freed_at_exit = nullptr;
void free_in_main_and_at_exit() {
  g_freed_at_exit = block_of(kSmall);
  std::atexit([] { release(g_freed_at_exit); });
  release(g_freed_at_exit);
}

void free_in_a_threads_destructor_too() {
  std::thread([] {
    pthread_key_t key;
    ::pthread_key_create(&key, [](void* p) { release(p); });
    char* p = block_of(kSmall);
    ::pthread_setspecific(key, p);
    release(p);
  }).join();
}

// A report must not need memory.
void free_twice_without_memory() {
  char* p = block_of(kSmall);
  release(p);
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_AS, &none);
  release(p);
}

template <class Allocate>
void free_twice_of(Allocate allocate) {
  char* p = another(allocate());
  write(p);
  release(p);
  release(p);
}

constexpr Kind kKinds[] = {
    // no misuse: the control
    {"none", [] { drain_by_frees(100), CApi::trim(); }},
    {"double_free_at_once", [] { free_twice(kSmall); }},
    {"double_free_at_once_tiny", [] { free_twice(1); }},
    {"double_free_at_once_middle", [] { free_twice(kMiddle); }},
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
    {"double_free_a_b_a", free_a_b_a},
    {"double_free_with_frees_between", free_twice_with_frees_between},
    {"double_free_after_other_sizes",
     [] {
       char* p = block_of(kSmall);
       release(p);
       for (std::size_t n = 200; n < 2000; n += 100) release(block_of(n));
       release(p);
     }},
    {"double_free_after_reuse", free_twice_after_reuse},
    {"double_free_after_reuse_by_a_thread", free_twice_with_a_thread_that_reuses},
    {"double_free_after_64_mib_of_frees",
     [] {
       char* p = block_of(kSmall);
       release(p);
       flush(4000);
       release(p);
     }},
    {"double_free_by_another_thread",
     [] {
       char* p = block_of(kSmall);
       release(p);
       std::thread([=] { release(p); }).join();
     }},
    {"double_free_by_two_threads",
     [] {
       char* p = block_of(100);
       std::thread([=] { release(p); }).join();
       std::thread([=] { release(p); }).join();
     }},
    {"double_free_by_two_threads_at_once", free_by_two_threads_at_once},
    {"double_free_in_a_child_of_fork", free_in_parent_and_child},
    {"double_free_without_memory", free_twice_without_memory},
    {"double_free_at_exit", free_in_main_and_at_exit},
    {"double_free_at_a_threads_end", free_in_a_threads_destructor_too},
    {"double_free_after_drain", free_twice_after_drain},
    {"double_free_after_all_was_given_back", free_twice_after_all_was_given_back},
    {"double_free_through_realloc_to_nothing",
     [] {
       char* p = block_of(kSmall);
       static_cast<void>(CApi::reallocate(p, 0));
       release(p);
     }},
    {"double_free_by_realloc",
     [] {
       char* p = block_of(kSmall);
       release(p);
       static_cast<void>(CApi::reallocate(p, 2 * kSmall));
     }},
    {"double_free_of_a_moved_block",
     [] {
       char* p = block_of(kSmall);
       char* moved = another(CApi::reallocate(p, kLarge));
       release(p);
       release(moved);
     }},
    {"double_free_of_calloc", [] { free_twice_of([] { return CApi::allocate_zeroed(kSmall); }); }},
    {"double_free_of_memalign", [] { free_twice_of([] { return CApi::allocate_aligned(64, kSmall); }); }},
    {"double_free_of_memalign_of_a_page", [] { free_twice_of([] { return CApi::allocate_aligned(4096, kSmall); }); }},
    {"double_free_of_strdup", [] { free_twice_of([] { return ::strdup("a string of the C library's"); }); }},
    {"double_delete",
     [] {
       void* p = opaque(::operator new(kSmall));
       ::operator delete(opaque(p));
       ::operator delete(opaque(p));
     }},
    {"double_delete_of_an_array",
     [] {
       void* p = opaque(::operator new[](kSmall));
       ::operator delete[](opaque(p));
       ::operator delete[](opaque(p));
     }},
    {"double_delete_sized",
     [] {
       void* p = opaque(::operator new(kSmall));
       ::operator delete(opaque(p), kSmall);
       ::operator delete(opaque(p), kSmall);
     }},
    {"double_delete_aligned",
     [] {
       void* p = opaque(::operator new(kSmall, std::align_val_t{64}));
       ::operator delete(opaque(p), std::align_val_t{64});
       ::operator delete(opaque(p), std::align_val_t{64});
     }},
    {"double_free_of_a_run", [] { free_twice(200 * kKiB); }},
    {"double_free_of_a_large_block", [] { free_twice(20 * kMiB); }},
    {"double_free_of_a_run_beside_others", [] { free_twice_beside_others(200 * kKiB); }},
    {"double_free_of_a_run_after_64_mib_of_frees",
     [] {
       char* p = block_of(kLarge);
       release(p);
       flush(4000);
       release(p);
     }},
    {"double_free_seen_at_the_call_tiny", [] { free_twice(1), end_here(); }},
    {"double_free_seen_at_the_call", [] { free_twice(kSmall), end_here(); }},
    {"double_free_seen_at_the_call_middle", [] { free_twice(kMiddle), end_here(); }},
    {"double_free_a_b_a_seen_at_the_call", [] { free_a_b_a(), end_here(); }},
    {"double_free_seen_after_a_thousand_pairs",
     [] {
       char* p = block_of(kSmall);
       release(p);
       for (int i = 0; i < 1000; ++i) release(block_of(kSmall));
       release(p);
       end_here();
     }},
};

}  // namespace

Kinds double_frees() { return kKinds; }

}  // namespace freehold::test
