// SPDX-License-Identifier: MIT
// Tests that freehold::thread_alloc_article does what the article says, seen from its C API: where memory comes from, by the
// linker's counters; and when blocks of other threads are handed over and taken back, by the heap's own statistics.
#include <gtest/gtest.h>

#include <cstddef>
#include <thread>
#include <vector>

#include "freehold/thread_alloc.h"
#include "freehold/thread_alloc/owner_pages_heap.hpp"

namespace {
struct Calls {
  int malloc = 0, memalign = 0, realloc = 0;
  std::size_t last_bytes = 0, last_alignment = 0;
};
thread_local Calls t_calls;
}  // namespace

extern "C" {
void* __real_malloc(std::size_t bytes);
void* __real_memalign(std::size_t alignment, std::size_t bytes);
void* __real_realloc(void* block, std::size_t bytes);

void* __wrap_malloc(std::size_t bytes) {
  ++t_calls.malloc;
  t_calls.last_bytes = bytes;
  return __real_malloc(bytes);
}
void* __wrap_memalign(std::size_t alignment, std::size_t bytes) {
  ++t_calls.memalign;
  t_calls.last_alignment = alignment;
  t_calls.last_bytes = bytes;
  return __real_memalign(alignment, bytes);
}
void* __wrap_realloc(void* block, std::size_t bytes) {
  ++t_calls.realloc;
  t_calls.last_bytes = bytes;
  return __real_realloc(block, bytes);
}
}

namespace {
using namespace freehold::thread_alloc;

OwnerPagesStats heap_stats() {
  OwnerPagesStats stats;
  OwnerPagesHeap<ArticlePages<SystemUpstream>>::stats(stats);
  return stats;
}

TEST(ArticlePolicy, Alloc_LargerThan128Bytes_FromTheStandardMalloc) {
  thread_free(thread_alloc(1));  // the first call joins
  for (const std::size_t bytes : {129, 200, 4096, 100'000}) {
    t_calls = {};
    void* block = thread_alloc(bytes);
    EXPECT_EQ(t_calls.malloc, 1) << bytes;
    EXPECT_EQ(t_calls.last_bytes, bytes);
    block = thread_realloc(block, bytes + 1);
    EXPECT_EQ(t_calls.realloc, 1) << bytes;
    EXPECT_EQ(t_calls.memalign, 0) << bytes;
    thread_free(block);
  }
}

TEST(ArticlePolicy, Alloc_UpTo128Bytes_PagesOf4KiBFromTheStandardMalloc) {
  std::thread([] {
    const OwnerPagesStats before = heap_stats();
    std::vector<void*> blocks(1000);
    t_calls = {};
    for (void*& block : blocks) block = thread_alloc(128);
    EXPECT_EQ(t_calls.malloc, 0);
    EXPECT_GE(t_calls.memalign, 1000 * 128 / 4096);
    EXPECT_EQ(t_calls.last_alignment, 4096u);
    EXPECT_EQ(t_calls.last_bytes, 4096u);
    EXPECT_EQ(heap_stats().pages - before.pages, 1000u / 31 + 1);
    for (void* const block : blocks) thread_free(block);
  }).join();
}

// The owner has a page with room for all of it, so that none of its allocations takes a slow path.
TEST(ArticlePolicy, Free_ByAnotherThread_OnTheOwnersListAtOnceAndTakenBackByTheAllocationPastTheThreshold) {
  std::thread([] {
    std::vector<void*> blocks(120);
    for (void*& block : blocks) block = thread_alloc(16);
    const OwnerPagesStats before = heap_stats();
    const auto free_elsewhere = [&](std::size_t first, std::size_t end) {
      std::thread([&] {
        for (std::size_t i = first; i < end; ++i) {
          thread_free(blocks[i]);
          EXPECT_EQ(heap_stats().hand_overs - before.hand_overs, i + 1);
          EXPECT_EQ(heap_stats().pending - before.pending, i + 1);
        }
      }).join();
    };
    free_elsewhere(0, 99);
    thread_free(thread_alloc(16));
    EXPECT_EQ(heap_stats().drains, before.drains);
    free_elsewhere(99, 120);
    void* const block = thread_alloc(16);
    EXPECT_EQ(heap_stats().drains, before.drains + 1);
    EXPECT_EQ(heap_stats().pending, before.pending);
    thread_free(block);
  }).join();
}

}  // namespace
