// Tells AddressSanitizer and memcheck which memory of a pool or heap is handed out, so that they find use after release
// and overruns there as they do in malloc's memory. AddressSanitizer is known when the program is compiled; memcheck when
// it runs: whoever has a fast path asks under_memcheck() once and leaves that path off, which makes it free of charge.
//
//   Protocol: conceal() all memory when it is made, reveal() a block when it is handed out, conceal() it when it comes
//   back, forget() the memory before it is freed. Whether memory is concealed does not tell whether it is free: users
//   conceal parts of what they have, too. Pools and heaps keep a bit for each slot beside it.
//
// Any thread. Without either tool: nothing (compiled out), or one call in a slow path.
#pragma once
#include <cstddef>

extern "C" void __asan_poison_memory_region(const volatile void* start, std::size_t bytes);
extern "C" void __asan_unpoison_memory_region(const volatile void* start, std::size_t bytes);
extern "C" void __asan_report_error(void* pc, void* frame, void* stack, void* address, int is_write, std::size_t bytes);

namespace freehold::base {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitizer = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif
#else
inline constexpr bool kAddressSanitizer = false;
#endif

// A program and the libraries that it links may be compiled with and without AddressSanitizer. What depends on it has it in
// its name, as a template's argument: the linker keeps one of all functions of a name, and a slot that one kind conceals
// and the other does not reveal would look released.
template <bool kAsan = kAddressSanitizer>
inline void asan_conceal(const void* start, std::size_t bytes) noexcept {
  if constexpr (kAsan) __asan_poison_memory_region(start, bytes);
}
template <bool kAsan = kAddressSanitizer>
inline void asan_reveal(const void* start, std::size_t bytes) noexcept {
  if constexpr (kAsan) __asan_unpoison_memory_region(start, bytes);
}
// Ends the process with AddressSanitizer's report of a use of `block`, with the caller's stack.
template <bool kAsan = kAddressSanitizer>
[[gnu::noinline]] void asan_report_use(void* block) noexcept {
  if constexpr (kAsan) {
    void* const frame = __builtin_frame_address(0);
    __asan_report_error(__builtin_return_address(0), frame, frame, block, 1, 1);
  }
}

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
template <bool kAsan>
class PoisonOf {
 public:
  // Whether every hand-over has to be told: then fast paths stay off.
  [[nodiscard]] bool watched() const noexcept { return kAsan || memcheck_; }

  [[nodiscard]] bool memcheck() const noexcept { return memcheck_; }

  void conceal_all(const void* start, std::size_t bytes) const noexcept {
    asan_conceal<kAsan>(start, bytes);
    if (memcheck_) memcheck_conceal(start, bytes);
  }
  void reveal(const void* block, std::size_t bytes) const noexcept {
    asan_reveal<kAsan>(block, bytes);
    if (memcheck_) memcheck_block_begins(block, bytes);
  }
  void conceal(const void* block, std::size_t bytes) const noexcept {
    asan_conceal<kAsan>(block, bytes);
    if (memcheck_) memcheck_block_ends(block);
  }
  void forget(const void* start, std::size_t bytes) const noexcept {
    asan_reveal<kAsan>(start, bytes);
    if (memcheck_) memcheck_forget(start, bytes);
  }

 private:
  bool memcheck_ = under_memcheck();
};
using Poison = PoisonOf<kAddressSanitizer>;

// The marking of one heap, whose free blocks hold links, and whose blocks may end all at once.
template <bool kAsan>
class HeapPoisonOf {
 public:
  HeapPoisonOf() noexcept {
    if (memcheck_) memcheck_heap_begins(this);
  }
  HeapPoisonOf(const HeapPoisonOf&) = delete;
  HeapPoisonOf& operator=(const HeapPoisonOf&) = delete;
  ~HeapPoisonOf() {
    if (memcheck_) memcheck_heap_ends(this);
  }

  [[nodiscard]] bool watched() const noexcept { return kAsan || memcheck_; }

  void conceal_all(const void* start, std::size_t bytes) const noexcept {
    asan_conceal<kAsan>(start, bytes);
    if (memcheck_) memcheck_conceal(start, bytes);
  }
  void reveal(const void* block, std::size_t bytes) const noexcept {
    asan_reveal<kAsan>(block, bytes);
    if (memcheck_) memcheck_block_begins_in(this, block, bytes);
  }
  void conceal(const void* block, std::size_t bytes) const noexcept {
    asan_conceal<kAsan>(block, bytes);
    if (memcheck_) memcheck_block_ends_in(this, block);
  }
  // For the moment in which the heap itself reads or writes the link in a free block.
  void reveal_link(const void* link, std::size_t bytes) const noexcept {
    asan_reveal<kAsan>(link, bytes);
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
    asan_reveal<kAsan>(start, bytes);
    if (memcheck_) memcheck_forget(start, bytes);
  }

 private:
  bool memcheck_ = under_memcheck();
};
using HeapPoison = HeapPoisonOf<kAddressSanitizer>;

}  // namespace freehold::base
