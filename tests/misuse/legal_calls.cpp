// SPDX-License-Identifier: MIT
// Correct programs of the malloc family that a malloc which looks for misuse might mind: odd moments, odd owners, odd
// contents. Each checks what it gets; a wrong answer ends the process with code 1. Each promise of a call is
// tests/conformance's, which table.py runs in these modes, too.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/misuse/blocks.hpp"

namespace freehold::test {
namespace {

void require(bool condition) {
  if (condition) return;
  std::puts("a correct call has a wrong result");
  std::fflush(stdout);
  ::_exit(1);
}

constexpr std::size_t kSizes[] = {0,    1,    8,      15,        16,        24,         100,     128,
                                  1000, 4096, 20'000, 32 * kKiB, 64 * kKiB, 200 * kKiB, 5 * kMiB};

void realloc_in_every_direction() {
  char* p = another(CApi::reallocate(nullptr, 100));
  std::memset(p, 7, 100);
  for (const std::size_t n :
       {100UL, 101UL, 99UL, 100UL, 20'000UL, 20'000UL, 300UL, 6 * kMiB, 6 * kMiB + 1, 100 * kKiB, 100UL}) {
    p = another(CApi::reallocate(p, n));
    require(p[0] == 7 && p[98] == 7);
    std::memset(p, 7, n);
  }
  require(CApi::reallocate(p, 0) == nullptr);
}

void calloc_is_zero_after_dirty_frees() {
  for (const std::size_t n : kSizes) {
    for (int i = 0; i < 20; ++i) release(block_of(n));
    char* p = another(CApi::allocate_zeroed(n));
    for (std::size_t i = 0; i < n; ++i) require(p[i] == 0);
    std::memset(p, 9, n);
    release(p);
  }
}

void threads_that_end_with_live_blocks() {
  char* blocks[8] = {};
  std::vector<std::thread> threads;
  for (char*& p : blocks)
    threads.emplace_back([&p] {
      for (int i = 0; i < 100; ++i) release(block_of(static_cast<std::size_t>(i) * 10));
      p = block_of(500);
    });
  for (std::thread& thread : threads) thread.join();
  for (char* p : blocks) release(p);
}

// The process ends while its threads are inside malloc and free.
void exit_while_threads_allocate() {
  for (int i = 0; i < 3; ++i)
    std::thread([] {
      for (std::size_t n = 1;; n = n * 7 % 5000 + 1) release(block_of(n));
    }).detach();
  ::usleep(20'000);
}

void fork_and_free_on_both_sides() {
  char* blocks[100];
  for (char*& p : blocks) p = block_of(300);
  const pid_t child = ::fork();
  for (char* p : blocks) {
    p[299] = 4;
    release(p);
  }
  for (int i = 0; i < 1000; ++i) release(block_of(300));
  if (child == 0) std::exit(0);
  int status = 0;
  ::waitpid(child, &status, 0);
  require(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

void fork_while_threads_allocate() {
  volatile bool stops = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&] {
      while (!stops) release(block_of(700));
    });
  for (int i = 0; i < 10; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (int k = 0; k < 100; ++k) release(block_of(700));
      std::exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    require(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  stops = true;
  for (std::thread& thread : threads) thread.join();
}

// stdout keeps using the buffer until after the exit handlers.
void a_stream_with_a_buffer_of_ours() { std::setvbuf(stdout, block_of(8000), _IOFBF, 8000); }

char* g_kept = nullptr;
void free_in_an_exit_handler() {
  g_kept = block_of(100);
  std::atexit([] {
    g_kept = another(CApi::reallocate(g_kept, 3000));
    std::memset(g_kept, 1, 3000);
    release(g_kept);
    release(block_of(10));
  });
}

void allocate_in_thread_specific_destructors() {
  static pthread_key_t key;
  ::pthread_key_create(&key, [](void* p) {
    release(p);
    static thread_local int rounds = 0;
    if (++rounds < 3) ::pthread_setspecific(key, block_of(40));
  });
  std::thread([] { ::pthread_setspecific(key, block_of(50)); }).join();
}

// Bytes that a malloc may use as its marks are as good as any others.
void contents_that_look_like_marks() {
  for (const int byte : {0x00, 0xbe, 0xdf, 0xa5, 0xff, 0xef, 0xcd, 0xab}) {
    for (const std::size_t n : kSizes) {
      char* p = block_of(n);
      std::memset(p, byte, n);
      p = another(CApi::reallocate(p, n + 40));
      std::memset(p, byte, n + 40);
      release(p);
    }
  }
}

// Everything that could be written at the end of one block, before the next one is freed.
void neighbours_that_are_full() {
  char* blocks[64];
  for (const std::size_t n : {1UL, 13UL, 16UL, 48UL, 100UL, 4000UL}) {
    for (char*& p : blocks) p = block_of(n);
    for (char* p : blocks) std::memset(p, 0xff, n);
    for (int i = 0; i < 64; i += 2) release(blocks[i]);
    for (int i = 1; i < 64; i += 2) std::memset(blocks[i], 0xee, n);
    for (int i = 1; i < 64; i += 2) release(blocks[i]);
  }
}

void the_right_sizes() {
  auto* const sized = reinterpret_cast<void (*)(void*, std::size_t)>(::dlsym(RTLD_DEFAULT, "free_sized"));
  auto* const aligned =
      reinterpret_cast<void (*)(void*, std::size_t, std::size_t)>(::dlsym(RTLD_DEFAULT, "free_aligned_sized"));
  if (sized == nullptr || aligned == nullptr) return;
  for (std::size_t n = 0; n < 2000; ++n) {
    sized(block_of(n), n);
    sized(CApi::allocate_zeroed(n), n);
    sized(CApi::reallocate(block_of(10), n + 1), n + 1);
    aligned(opaque(&::aligned_alloc)(64, n), 64, n);
    // A block that realloc returns is no aligned block any more, also where it stays.
    sized(CApi::reallocate(opaque(&::aligned_alloc)(64, n), n + 1), n + 1);
    sized(CApi::reallocate(opaque(&::aligned_alloc)(64, n + 1), n + 1), n + 1);
  }
  for (const std::size_t n : kSizes) {
    sized(block_of(n), n);
    aligned(opaque(&::aligned_alloc)(4096, n), 4096, n);
  }
  sized(nullptr, 0);
  sized(nullptr, 100);
  aligned(nullptr, 64, 100);
}

void a_look_on_demand() {
  auto* const check = reinterpret_cast<int (*)()>(::dlsym(RTLD_DEFAULT, "freehold_check_all"));
  std::vector<char*> blocks(3000);
  std::size_t n = 0;
  for (char*& p : blocks) p = block_of(n += 7);
  for (std::size_t i = 0; i < blocks.size(); i += 3) release(blocks[i]);
  if (check != nullptr) require(check() == 0);
  for (std::size_t i = 1; i < blocks.size(); i += 3) release(blocks[i]);
  if (check != nullptr) require(check() == 0);
}

void a_look_on_demand_while_threads_allocate() {
  auto* const check = reinterpret_cast<int (*)()>(::dlsym(RTLD_DEFAULT, "freehold_check_all"));
  volatile bool stops = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      for (std::size_t n = 1; !stops; n = n * 7 % 5000 + 1) release(block_of(n));
    });
  for (int i = 0; i < 20 && check != nullptr; ++i) require(check() == 0);
  stops = true;
  for (std::thread& thread : threads) thread.join();
}

// Prints how many of 63 blocks lie behind the one that was allocated before.
void order_of_addresses() {
  int ascending = 0;
  const char* last = block_of(100);
  for (int i = 0; i < 63; ++i) {
    const char* const p = block_of(100);
    ascending += p > last;
    last = p;
  }
  std::printf("ascending %d\n", ascending);
}

constexpr Kind kKinds[] = {
    {"legal_realloc_in_every_direction", realloc_in_every_direction},
    {"legal_calloc_is_zero_after_dirty_frees", calloc_is_zero_after_dirty_frees},
    {"legal_threads_that_end_with_live_blocks", threads_that_end_with_live_blocks},
    {"legal_exit_while_threads_allocate", exit_while_threads_allocate},
    {"legal_exit_in_a_thread", [] { std::thread([] { std::exit(0); }).join(); }},
    {"legal_exit_without_handlers", [] { block_of(100), end_here(); }},
    {"legal_fork_and_free_on_both_sides", fork_and_free_on_both_sides},
    {"legal_fork_while_threads_allocate", fork_while_threads_allocate},
    {"legal_stream_with_a_buffer_of_ours", a_stream_with_a_buffer_of_ours},
    {"legal_free_in_an_exit_handler", free_in_an_exit_handler},
    {"legal_thread_specific_destructors", allocate_in_thread_specific_destructors},
    {"legal_contents_that_look_like_marks", contents_that_look_like_marks},
    {"legal_neighbours_that_are_full", neighbours_that_are_full},
    {"legal_right_sizes", the_right_sizes},
    {"legal_order_of_addresses", order_of_addresses},
    {"legal_64_mib_of_frees", [] { flush(4000), flush(kLarge); }},
    {"legal_look_on_demand", a_look_on_demand},
    {"legal_look_on_demand_while_threads_allocate", a_look_on_demand_while_threads_allocate},
};

}  // namespace

Kinds legal_calls() { return kKinds; }

}  // namespace freehold::test
