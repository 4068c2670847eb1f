// Tells AddressSanitizer and memcheck which memory of a pool or heap is handed out, so that they find use after release
// and overruns there as they do in malloc's memory. AddressSanitizer is known when the program is compiled; memcheck when
// it runs: whoever has a fast path asks under_memcheck() once and leaves that path off, which makes it free of charge.
//
//   Protocol: conceal() all memory when it is made, reveal() a block when it is handed out, conceal() it when it comes
//   back, forget() the memory before it is freed. What is concealed already when it comes back comes back a second time:
//   AddressSanitizer's builds ask asan_is_concealed() before.
//
// Any thread. Without either tool: nothing (compiled out), or one call in a slow path.
#pragma once
#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define FREEHOLD_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FREEHOLD_ASAN 1
#endif
#endif
#if defined(FREEHOLD_ASAN)
extern "C" void __asan_poison_memory_region(const volatile void* start, std::size_t bytes);
extern "C" void __asan_unpoison_memory_region(const volatile void* start, std::size_t bytes);
extern "C" int __asan_address_is_poisoned(const volatile void* address);
#endif

namespace freehold::base {

#if defined(FREEHOLD_ASAN)
inline constexpr bool kAddressSanitizer = true;
inline void asan_conceal(const void* start, std::size_t bytes) noexcept { __asan_poison_memory_region(start, bytes); }
inline void asan_reveal(const void* start, std::size_t bytes) noexcept { __asan_unpoison_memory_region(start, bytes); }
inline bool asan_is_concealed(const void* address) noexcept { return __asan_address_is_poisoned(address) != 0; }
#else
inline constexpr bool kAddressSanitizer = false;
inline void asan_conceal(const void*, std::size_t) noexcept {}
inline void asan_reveal(const void*, std::size_t) noexcept {}
inline bool asan_is_concealed(const void*) noexcept { return false; }
#endif

// Whether the program runs under valgrind (any of its tools). Cost: six instructions.
[[nodiscard]] bool under_memcheck() noexcept;
// A block begins, ends; memory nobody may touch; memory as any other. Nothing outside of valgrind.
void memcheck_block_begins(const void* start, std::size_t bytes) noexcept;
void memcheck_block_ends(const void* start) noexcept;
void memcheck_conceal(const void* start, std::size_t bytes) noexcept;
void memcheck_forget(const void* start, std::size_t bytes) noexcept;
void memcheck_define(const void* start, std::size_t bytes) noexcept;
// The blocks of a heap, known by its address: all of them end when it does.
void memcheck_heap_begins(const void* heap) noexcept;
void memcheck_heap_ends(const void* heap) noexcept;
void memcheck_block_begins_in(const void* heap, const void* start, std::size_t bytes) noexcept;
void memcheck_block_ends_in(const void* heap, const void* start) noexcept;

// The marking of one pool: remembers whether memcheck looks on.
class Poison {
 public:
  // Whether every hand-over has to be told: then fast paths stay off.
  [[nodiscard]] bool watched() const noexcept { return kAddressSanitizer || memcheck_; }

  [[nodiscard]] bool memcheck() const noexcept { return memcheck_; }

  void conceal_all(const void* start, std::size_t bytes) const noexcept {
    asan_conceal(start, bytes);
    if (memcheck_) memcheck_conceal(start, bytes);
  }
  void reveal(const void* block, std::size_t bytes) const noexcept {
    asan_reveal(block, bytes);
    if (memcheck_) memcheck_block_begins(block, bytes);
  }
  void conceal(const void* block, std::size_t bytes) const noexcept {
    asan_conceal(block, bytes);
    if (memcheck_) memcheck_block_ends(block);
  }
  void forget(const void* start, std::size_t bytes) const noexcept {
    asan_reveal(start, bytes);
    if (memcheck_) memcheck_forget(start, bytes);
  }

 private:
  bool memcheck_ = under_memcheck();
};

// The marking of one heap, whose free blocks hold links, and whose blocks may end all at once.
class HeapPoison {
 public:
  HeapPoison() noexcept {
    if (memcheck_) memcheck_heap_begins(this);
  }
  HeapPoison(const HeapPoison&) = delete;
  HeapPoison& operator=(const HeapPoison&) = delete;
  ~HeapPoison() {
    if (memcheck_) memcheck_heap_ends(this);
  }

  [[nodiscard]] bool watched() const noexcept { return kAddressSanitizer || memcheck_; }

  void conceal_all(const void* start, std::size_t bytes) const noexcept {
    asan_conceal(start, bytes);
    if (memcheck_) memcheck_conceal(start, bytes);
  }
  void reveal(const void* block, std::size_t bytes) const noexcept {
    asan_reveal(block, bytes);
    if (memcheck_) memcheck_block_begins_in(this, block, bytes);
  }
  void conceal(const void* block, std::size_t bytes) const noexcept {
    asan_conceal(block, bytes);
    if (memcheck_) memcheck_block_ends_in(this, block);
  }
  // For the moment in which the heap itself reads or writes the link in a free block.
  void reveal_link(const void* link, std::size_t bytes) const noexcept {
    asan_reveal(link, bytes);
    if (memcheck_) memcheck_define(link, bytes);
  }
  void conceal_link(const void* link, std::size_t bytes) const noexcept { conceal_all(link, bytes); }
  // All blocks end now.
  void end_all() const noexcept {
    if (!memcheck_) return;
    memcheck_heap_ends(this);
    memcheck_heap_begins(this);
  }
  void forget(const void* start, std::size_t bytes) const noexcept {
    asan_reveal(start, bytes);
    if (memcheck_) memcheck_forget(start, bytes);
  }

 private:
  bool memcheck_ = under_memcheck();
};

}  // namespace freehold::base
