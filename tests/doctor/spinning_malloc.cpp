// SPDX-License-Identifier: MIT
// A program that brings a malloc in its own file, which spins for one lock. Nothing else in it uses an atomic operation.
//
//   spinning_malloc THREADS PAIRS     each thread calls malloc and free so often
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kClasses = 24;  // powers of two, from 32 bytes
constexpr std::size_t kArena = std::size_t{256} << 20;
constexpr std::size_t kHeader = 16;  // the class, before the block

struct Block {
  Block* next;
};

alignas(4096) unsigned char g_arena[kArena];  // never returned, so that the program needs nothing of the C library's
std::size_t g_used = 0;
Block* g_free[kClasses];
std::atomic<bool> g_locked{false};

class Lock {
 public:
  [[gnu::always_inline]] Lock() {
    while (g_locked.exchange(true, std::memory_order_acquire)) {  // pairs with the release below
      while (g_locked.load(std::memory_order_relaxed)) {          // the exchange looks again
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
      }
    }
  }
  [[gnu::always_inline]] ~Lock() { g_locked.store(false, std::memory_order_release); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
};

[[gnu::always_inline]] inline void* take(std::size_t bytes) {
  std::size_t of = 0;
  while ((std::size_t{32} << of) < bytes + kHeader) ++of;
  if (of >= kClasses) return nullptr;
  const Lock lock;
  Block* block = g_free[of];
  if (block != nullptr) {
    g_free[of] = block->next;
  } else {
    const std::size_t size = std::size_t{32} << of;
    if (kArena - g_used < size) return nullptr;
    block = reinterpret_cast<Block*>(g_arena + g_used);
    g_used += size;
  }
  std::memcpy(block, &of, sizeof of);
  return reinterpret_cast<unsigned char*>(block) + kHeader;
}

}  // namespace

extern "C" {
[[gnu::noinline, gnu::visibility("default")]] void* malloc(std::size_t bytes) { return take(bytes); }

[[gnu::noinline, gnu::visibility("default")]] void free(void* memory) {
  if (memory == nullptr) return;
  auto* const block = reinterpret_cast<Block*>(static_cast<unsigned char*>(memory) - kHeader);
  std::size_t of = 0;
  std::memcpy(&of, block, sizeof of);
  const Lock lock;
  block->next = g_free[of];
  g_free[of] = block;
}

void* calloc(std::size_t count, std::size_t bytes) {
  void* const memory = take(count * bytes);
  return memory != nullptr ? std::memset(memory, 0, count * bytes) : nullptr;
}

void* realloc(void* memory, std::size_t bytes) {
  if (memory == nullptr) return take(bytes);
  std::size_t of = 0;
  std::memcpy(&of, static_cast<unsigned char*>(memory) - kHeader, sizeof of);
  const std::size_t had = (std::size_t{32} << of) - kHeader;
  if (bytes <= had) return memory;
  void* const more = take(bytes);
  if (more == nullptr) return nullptr;
  std::memcpy(more, memory, had);
  free(memory);
  return more;
}

// The few aligned requests here come from the dynamic linker, for threads: it aligns within a larger block itself.
int posix_memalign(void**, std::size_t, std::size_t) { return ENOMEM; }
void* aligned_alloc(std::size_t, std::size_t) { return nullptr; }
}

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 2;
  const long pairs = argc > 2 ? std::atol(argv[2]) : 1'000'000;
  std::vector<std::thread> group;
  for (int t = 0; t < threads; ++t) {
    group.emplace_back([pairs] {
      for (long i = 0; i < pairs; ++i) {
        void* volatile block = std::malloc(48);
        std::free(block);
      }
    });
  }
  for (std::thread& thread : group) thread.join();
  return 0;
}
