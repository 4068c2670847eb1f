// SPDX-License-Identifier: MIT
// freehold_stats() and freehold_class_stats() of freehold/malloc.h: the engine's figures in the structs of the C API, whose
// layout is fixed while the engine's may change. A caller's struct that is smaller or larger than ours is filled as far as
// both go.
#include <errno.h>
#include <string.h>

#include "freehold/alloc/engine.hpp"
#include "freehold/malloc.h"
#include "freehold/malloc/export.hpp"

namespace {

namespace alloc = freehold::alloc;

constexpr size_t kLeastBytes = offsetof(freehold_stats_t, reserved_bytes);

// Each figure of the C structs is one of the engine's.
static_assert(offsetof(freehold_stats_t, cpus) - kLeastBytes ==
              offsetof(alloc::Stats, cpus) - offsetof(alloc::Stats, reserved_bytes));
static_assert(sizeof(freehold_class_stats_t) == sizeof(alloc::ClassStats));

size_t smaller(size_t a, size_t b) noexcept { return a < b ? a : b; }

// Copies a struct of ours to one of the caller's, which has `size` bytes. Returns the bytes that both have.
template <class T>
size_t copy_known(void* out, size_t size, const T& ours) noexcept {
  const size_t known = smaller(size, sizeof ours);
  memcpy(out, &ours, known);
  memset(static_cast<char*>(out) + known, 0, size - known);
  return known;
}

template <size_t kBytes>
void copy_text(char (&to)[kBytes], const char (&from)[kBytes]) noexcept {
  memcpy(to, from, kBytes);
}

freehold_stats_t converted(const alloc::Stats& s) noexcept {
  freehold_stats_t c{};
  c.version = FREEHOLD_STATS_VERSION;
  c.class_count = s.class_count;
#define FREEHOLD_SET(name, public_name) c.public_name = s.name;
  FREEHOLD_FIGURES(FREEHOLD_SET)
#undef FREEHOLD_SET
  c.cpus = s.cpus;
  copy_text(c.cpus_source, s.cpus_source);
  copy_text(c.cache_mode, s.cache_mode);
  copy_text(c.huge_pages, s.huge_pages);
  return c;
}

freehold_class_stats_t converted(const alloc::ClassStats& s) noexcept {
  freehold_class_stats_t c{};
#define FREEHOLD_SET(name) c.name = s.name;
  FREEHOLD_CLASS_FIGURES(FREEHOLD_SET)
#undef FREEHOLD_SET
  return c;
}

}  // namespace

extern "C" {

FREEHOLD_EXPORT int freehold_stats(freehold_stats_t* out, size_t size) {
  if (out == nullptr || size < kLeastBytes) {
    errno = EINVAL;
    return -1;
  }
  alloc::Stats s;
  alloc::stats(s);
  const size_t filled = copy_known(out, size, converted(s));
  out->size = filled;
  return 0;
}

FREEHOLD_EXPORT size_t freehold_class_stats(freehold_class_stats_t* out, size_t count, size_t entry_size) {
  if (entry_size == 0 || (out == nullptr && count != 0)) {
    errno = EINVAL;
    return 0;
  }
  alloc::Stats s;
  alloc::stats(s);
  const size_t known = smaller(count, s.class_count);
  for (size_t i = 0; i < known; ++i)
    copy_known(reinterpret_cast<char*>(out) + i * entry_size, entry_size, converted(s.classes[i]));
  return s.class_count;
}

}  // extern "C"
