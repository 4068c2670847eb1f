// SPDX-License-Identifier: MIT
// Tells AddressSanitizer which memory is handed out. It is known when the program is compiled. poison.hpp has the
// marks of a pool or a heap, for memcheck, too.
//
// A program and the libraries that it links may be compiled with and without AddressSanitizer. Code that depends on it has
// it in its name, as a template's argument: the linker keeps one of all functions of a name, and a slot that one kind
// poisons and the other does not unpoison would look released.
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

// True if a sanitizer has to see all that the program does with slots; the library has compiled its code without it.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FREEHOLD_BASE_INSTRUMENTED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define FREEHOLD_BASE_INSTRUMENTED
#endif
#endif
#if defined(FREEHOLD_BASE_INSTRUMENTED)
inline constexpr bool kInstrumented = true;
#else
inline constexpr bool kInstrumented = false;
#endif

template <bool kAsan = kAddressSanitizer>
inline void asan_poison(const void* start, std::size_t bytes) noexcept {
  if constexpr (kAsan) __asan_poison_memory_region(start, bytes);
}
template <bool kAsan = kAddressSanitizer>
inline void asan_unpoison(const void* start, std::size_t bytes) noexcept {
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

}  // namespace freehold::base
