// SPDX-License-Identifier: MIT
// Ends a program that combines freehold::malloc with a sanitizer's malloc by one line; else it would crash before main(). In
// the static library alone; engine::start() calls it, and so does the sanitizer's runtime before it is ready: hence no
// function that it intercepts.
#include "freehold/os/last_words.hpp"

extern "C" {
[[gnu::weak]] void __asan_init();
[[gnu::weak]] void __hwasan_init();
[[gnu::weak]] void __msan_init();
[[gnu::weak]] void __tsan_init();

void freehold_refuse_sanitizers() noexcept {
  if (__asan_init == nullptr && __hwasan_init == nullptr && __msan_init == nullptr && __tsan_init == nullptr) return;
  static constexpr char kLine[] =
      "freehold: this program is built with a sanitizer, which brings its own malloc: link it without freehold::malloc "
      "(pkg-config: freehold-static)\n";
  freehold::os::end_with_last_words(kLine, sizeof kLine - 1, 2);
}
}
