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
  c.reserved_bytes = s.reserved_bytes;
  c.committed_bytes = s.committed_bytes;
  c.small_span_bytes = s.small_span_bytes;
  c.run_bytes = s.run_bytes;
  c.direct_bytes = s.direct_bytes;
  c.retained_bytes = s.free_dirty_bytes;
  c.metadata_bytes = s.metadata_bytes;
  c.cached_limit_bytes = s.cached_limit_bytes;
  c.purged_bytes = s.purged_bytes;
  c.purge_calls = s.purge_calls;
  c.span_claims = s.span_claims;
  c.span_returns = s.span_returns;
  c.lock_waits = s.lock_waits;
  c.threads = s.threads;
  c.peak_threads = s.peak_threads;
  c.late_frees = s.late_frees;
  c.cpus = s.cpus;
  copy_text(c.cpus_source, s.cpus_source);
  copy_text(c.cache_mode, s.cache_mode);
  copy_text(c.huge_pages, s.huge_pages);
  return c;
}

freehold_class_stats_t converted(const alloc::ClassStats& s) noexcept {
  return {.slot_bytes = s.slot_bytes,
          .spans = s.spans,
          .slots = s.slots,
          .free_slots = s.free_slots,
          .refills = s.refills,
          .drains = s.drains};
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
