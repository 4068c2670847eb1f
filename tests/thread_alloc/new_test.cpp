// SPDX-License-Identifier: MIT
// Tests that FREEHOLD_REDEFINE_NEW, or the article's macro in every file, redirects every form of new and delete. The linker
// sends the calls of thread_alloc and the other functions through the counters below, so a form that calls another allocator
// is not counted. new_redefined.cpp has the macro.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "freehold/thread_alloc.h"

namespace {
struct Calls {
  std::atomic<long> plain{0}, aligned{0}, freed{0};
  std::atomic<std::size_t> last_bytes{0}, last_alignment{0};
  std::atomic<void*> last_block{nullptr}, last_freed{nullptr};
};
Calls g_calls;
}  // namespace

extern "C" {
void* __real_thread_alloc(std::size_t bytes);
void* __real_thread_alloc_aligned(std::size_t alignment, std::size_t bytes);
void __real_thread_free(void* block);

void* __wrap_thread_alloc(std::size_t bytes) {
  ++g_calls.plain;
  g_calls.last_bytes = bytes;
  return g_calls.last_block = __real_thread_alloc(bytes);
}
void* __wrap_thread_alloc_aligned(std::size_t alignment, std::size_t bytes) {
  ++g_calls.aligned;
  g_calls.last_bytes = bytes;
  g_calls.last_alignment = alignment;
  return g_calls.last_block = __real_thread_alloc_aligned(alignment, bytes);
}
void __wrap_thread_free(void* block) {
  ++g_calls.freed;
  g_calls.last_freed = block;
  __real_thread_free(block);
}
}

namespace {

// One new and its delete: both reach the backend, once, with the size and alignment asked for, and the same block.
template <class New, class Delete>
void expect_pair(std::size_t bytes, std::size_t alignment, New make, Delete destroy) {
  const long plain = g_calls.plain, aligned = g_calls.aligned, freed = g_calls.freed;
  void* const block = make();
  const std::size_t asked = g_calls.last_bytes, asked_alignment = g_calls.last_alignment;
  void* const given = g_calls.last_block;
  const long plain_now = g_calls.plain, aligned_now = g_calls.aligned;
  destroy(block);
  const long freed_now = g_calls.freed;
  void* const taken = g_calls.last_freed;

  EXPECT_NE(block, nullptr);
  EXPECT_EQ(block, given);
  EXPECT_EQ(block, taken);
  EXPECT_EQ(asked, bytes);
  EXPECT_EQ(freed_now - freed, 1);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0u);
  EXPECT_EQ(plain_now - plain, alignment <= 16);
  EXPECT_EQ(aligned_now - aligned, alignment > 16);
  EXPECT_TRUE(alignment <= 16 || asked_alignment == alignment);
}

TEST(NewOperator, Forms_WithoutAlignment_AllOnTheBackend) {
  for (const std::size_t n : {0, 1, 100, 128, 129, 5000, 200'000}) {
    expect_pair(n, 16, [=] { return ::operator new(n); }, [](void* p) { ::operator delete(p); });
    expect_pair(n, 16, [=] { return ::operator new[](n); }, [](void* p) { ::operator delete[](p); });
    expect_pair(n, 16, [=] { return ::operator new(n); }, [=](void* p) { ::operator delete(p, n); });
    expect_pair(n, 16, [=] { return ::operator new[](n); }, [=](void* p) { ::operator delete[](p, n); });
    expect_pair(n, 16, [=] { return ::operator new(n, std::nothrow); }, [](void* p) { ::operator delete(p, std::nothrow); });
    expect_pair(
        n, 16, [=] { return ::operator new[](n, std::nothrow); }, [](void* p) { ::operator delete[](p, std::nothrow); });
  }
}

TEST(NewOperator, Forms_WithAlignment_AlignedAndOnTheBackend) {
  for (std::size_t alignment = 8; alignment <= 65536; alignment *= 2)
    for (const std::size_t n : {1, 100, 128, 5000}) {
      const std::align_val_t a{alignment};
      expect_pair(n, alignment, [=] { return ::operator new(n, a); }, [=](void* p) { ::operator delete(p, a); });
      expect_pair(n, alignment, [=] { return ::operator new[](n, a); }, [=](void* p) { ::operator delete[](p, a); });
      expect_pair(n, alignment, [=] { return ::operator new(n, a); }, [=](void* p) { ::operator delete(p, n, a); });
      expect_pair(n, alignment, [=] { return ::operator new[](n, a); }, [=](void* p) { ::operator delete[](p, n, a); });
      expect_pair(
          n, alignment, [=] { return ::operator new(n, a, std::nothrow); },
          [=](void* p) { ::operator delete(p, a, std::nothrow); });
      expect_pair(
          n, alignment, [=] { return ::operator new[](n, a, std::nothrow); },
          [=](void* p) { ::operator delete[](p, a, std::nothrow); });
    }
}

struct alignas(256) Wide {
  char bytes[300];
};
Wide* volatile g_seen;  // a compiler may leave out a new and its delete if the object is not used

TEST(NewOperator, Expressions_ObjectsAndContainers_AllOnTheBackend) {
  const long plain = g_calls.plain, aligned = g_calls.aligned, freed = g_calls.freed;
  std::thread([] {
    const auto wide = std::make_unique<Wide>();
    g_seen = wide.get();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(g_seen) % 256, 0u);
    std::vector<std::unique_ptr<int>> ints;
    for (int i = 0; i < 1000; ++i) ints.push_back(std::make_unique<int>(i));
  }).join();
  const long more_plain = g_calls.plain - plain, more_aligned = g_calls.aligned - aligned,
             more_freed = g_calls.freed - freed;
  EXPECT_EQ(more_aligned, 1);
  EXPECT_GE(more_plain, 11);  // at least the vector's growth
  EXPECT_EQ(more_freed, more_plain + more_aligned);
}

TEST(NewOperator, SharedLibrary_AllocatesForUs_OnTheBackend) {
  const long plain = g_calls.plain, freed = g_calls.freed;
  {
    std::string text;
    text.reserve(1000);  // std::string's growth is compiled into libstdc++.so
    EXPECT_EQ(static_cast<void*>(text.data()), g_calls.last_block.load());
  }
  EXPECT_GT(g_calls.plain, plain);
  EXPECT_EQ(g_calls.freed - freed, g_calls.plain - plain);
}

volatile std::size_t g_absurd = SIZE_MAX / 2;
std::atomic<int> g_handler_calls{0};

TEST(NewOperator, Memory_Exhausted_BadAllocOrNull) {
  const std::size_t n = g_absurd;
  EXPECT_THROW(::operator delete(::operator new(n)), std::bad_alloc);
  EXPECT_THROW(::operator delete[](::operator new[](n)), std::bad_alloc);
  EXPECT_THROW(::operator delete(::operator new(n, std::align_val_t{64}), std::align_val_t{64}), std::bad_alloc);
  EXPECT_EQ(::operator new(n, std::nothrow), nullptr);
  EXPECT_EQ(::operator new[](n, std::nothrow), nullptr);
  EXPECT_EQ(::operator new(n, std::align_val_t{64}, std::nothrow), nullptr);
}

TEST(NewOperator, Handler_GivesUpAtItsThirdCall_AskedThreeTimes) {
  g_handler_calls = 0;
  std::set_new_handler([] {
    if (++g_handler_calls == 3) std::set_new_handler(nullptr);
  });
  EXPECT_THROW(::operator delete(::operator new(g_absurd)), std::bad_alloc);
  EXPECT_EQ(g_handler_calls, 3);
}

TEST(NewOperator, Handler_Throws_NothrowFormReturnsNull) {
  std::set_new_handler([] { throw std::bad_alloc(); });
  EXPECT_EQ(::operator new(g_absurd, std::nothrow), nullptr);
  EXPECT_THROW(::operator delete(::operator new(g_absurd)), std::bad_alloc);
  std::set_new_handler(nullptr);
}

}  // namespace
