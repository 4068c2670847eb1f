// SPDX-License-Identifier: MIT
// The registry of heaps around fork; what it reports is private_heap_test.cpp's.
#include "freehold/heap/registry.hpp"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "freehold/alloc/engine.hpp"
#include "tests/support/test.hpp"

namespace freehold::heap {
namespace {

void use_engine() noexcept {
  std::vector<void*> blocks;
  for (int i = 0; i < 10'000; ++i) blocks.push_back(alloc::allocate(1000));
  for (void* block : blocks) alloc::deallocate(block);
  alloc::deallocate(alloc::allocate(std::size_t{64} << 20));
}

// A heap of which fork takes the locks while another thread needs the engine's, as one that holds a heap's lock may.
struct HeapWhileOneForks {
  std::atomic<bool> is_forking = false, engine_used = false, was_used_in_time = false;

  void before_fork() noexcept {
    is_forking = true;
    for (int i = 0; i < 10'000 && !engine_used; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    was_used_in_time = engine_used.load();
  }
};
constexpr RegisteredHeap::Calls kCalls{
    [](void* heap) noexcept { static_cast<HeapWhileOneForks*>(heap)->before_fork(); },
    [](void*) noexcept {},
    [](void*) noexcept { return HeapStats{}; },
    [](const void*, LiveHeapLayout&) noexcept {},
    [](void*) noexcept { return std::size_t{0}; },
};

[[noreturn]] void fork_with_a_heap_made_first() {
  HeapWhileOneForks heap;
  RegisteredHeap place(&heap, "", kCalls);
  std::thread other([&] {
    while (!heap.is_forking) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    use_engine();
    heap.engine_used = true;
  });
  alloc::deallocate(alloc::allocate(1));
  const pid_t child = ::fork();
  if (child == 0) ::syscall(SYS_exit_group, 0);  // ThreadSanitizer's _exit() misses the other thread
  int status = -1;
  const bool well = ::waitpid(child, &status, 0) == child && status == 0 && heap.was_used_in_time;
  other.join();
  place.end();
  std::_Exit(well ? 0 : 1);
}

TEST(Registry, HeapBeforeTheFirstUseOfTheEngine_ForkTakesTheHeapsLocksFirst) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a new process, in which the engine was not used yet
  EXPECT_EXIT(fork_with_a_heap_made_first(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace freehold::heap
