// SPDX-License-Identifier: MIT
// glibc's functions that report on malloc (mallinfo, malloc_stats, malloc_info) or tune it (mallopt), with the engine's
// figures. All of them are here because of statically linked programs: one name left to libc.a would link glibc's malloc as
// well, and collide with ours. musl has none of them.
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>

#include "freehold/alloc/engine.hpp"
#include "freehold/malloc/export.hpp"

#ifdef __GLIBC__

namespace {

namespace alloc = freehold::alloc;

constexpr uint64_t kKiB = 1024;

struct Totals {
  uint64_t free_slots = 0, free_slot_bytes = 0;
};

Totals totals_of(const alloc::Stats& s) noexcept {
  Totals t;
  for (uint32_t c = 0; c < s.class_count; ++c) {
    t.free_slots += s.classes[c].free_slots;
    t.free_slot_bytes += s.classes[c].free_slots * s.classes[c].slot_bytes;
  }
  return t;
}

// As in glibc, printing is no cancellation point, though writing to a stream is one elsewhere.
class NotCancelled {
 public:
  NotCancelled() noexcept { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &former_); }
  ~NotCancelled() { pthread_setcancelstate(former_, nullptr); }
  NotCancelled(const NotCancelled&) = delete;
  NotCancelled& operator=(const NotCancelled&) = delete;

 private:
  int former_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace

extern "C" {

// glibc's equations hold: arena == uordblks + fordblks, and hblkhd is beside them. Slots in thread caches count as used, and
// so do the tails of spans.
FREEHOLD_EXPORT struct mallinfo2 mallinfo2(void) noexcept {
  alloc::Stats s;
  alloc::stats(s);
  const Totals t = totals_of(s);
  struct mallinfo2 m{};
  m.arena = s.small_span_bytes + s.run_bytes + s.free_dirty_bytes;
  m.ordblks = t.free_slots;
  m.hblks = s.direct_blocks;
  m.hblkhd = s.direct_bytes;
  m.uordblks = s.small_span_bytes - t.free_slot_bytes + s.run_bytes;
  m.fordblks = t.free_slot_bytes + s.free_dirty_bytes;
  m.keepcost = s.free_dirty_bytes;
  return m;
}

// The old form, whose figures wrap at 2 GiB.
FREEHOLD_EXPORT struct mallinfo mallinfo(void) noexcept {
  const struct mallinfo2 wide = mallinfo2();
  struct mallinfo m{};
  m.arena = static_cast<int>(wide.arena);
  m.ordblks = static_cast<int>(wide.ordblks);
  m.hblks = static_cast<int>(wide.hblks);
  m.hblkhd = static_cast<int>(wide.hblkhd);
  m.uordblks = static_cast<int>(wide.uordblks);
  m.fordblks = static_cast<int>(wide.fordblks);
  m.keepcost = static_cast<int>(wide.keepcost);
  return m;
}

// M_PERTURB works. Parameters that only tune glibc's malloc, and M_CHECK_ACTION, which glibc ignores by now, are accepted
// and ignored. Unknown ones are refused.
FREEHOLD_EXPORT int mallopt(int parameter, int value) noexcept {
  switch (parameter) {
    case M_PERTURB: alloc::set_perturbation(static_cast<uint8_t>(value)); return 1;
    case M_MXFAST:
    case M_NLBLKS:
    case M_GRAIN:
    case M_KEEP:
    case M_TRIM_THRESHOLD:
    case M_TOP_PAD:
    case M_MMAP_THRESHOLD:
    case M_MMAP_MAX:
    case M_ARENA_TEST:
    case M_ARENA_MAX:
    case M_CHECK_ACTION: return 1;
    default: return 0;
  }
}

FREEHOLD_EXPORT void malloc_stats(void) noexcept {
  const NotCancelled whole;
  alloc::Stats s;
  alloc::stats(s);
  fprintf(stderr,
          "freehold: small spans %" PRIu64 " KiB, of it free %" PRIu64 " KiB; runs %" PRIu64 " KiB; retained %" PRIu64
          " KiB; mapped alone %" PRIu64 " KiB; given back %" PRIu64 " KiB; threads %" PRIu64 "\n",
          s.small_span_bytes / kKiB, totals_of(s).free_slot_bytes / kKiB, s.run_bytes / kKiB, s.free_dirty_bytes / kKiB,
          s.direct_bytes / kKiB, s.purged_bytes / kKiB, s.threads);
}

// glibc's document, with one heap for the arena, and what only Freehold has in a separate element. Free memory that is no
// slot counts as a piece for each span. The greatest size is a bound: what was mapped for the arena so far.
FREEHOLD_EXPORT int malloc_info(int options, FILE* stream) noexcept {
  if (options != 0) return EINVAL;  // as glibc: returned, not set
  constexpr uint64_t kSpanBytes = 64 * kKiB;
  const NotCancelled whole;
  alloc::Stats s;
  alloc::stats(s);
  const Totals t = totals_of(s);
  fputs("<malloc version=\"1\">\n<heap nr=\"0\">\n<sizes>\n", stream);
  for (uint32_t c = 0; c < s.class_count; ++c)
    if (const alloc::ClassStats& k = s.classes[c]; k.free_slots != 0)
      fprintf(stream, "  <size from=\"%" PRIu64 "\" to=\"%" PRIu64 "\" total=\"%" PRIu64 "\" count=\"%" PRIu64 "\"/>\n",
              c == 0 ? 1 : s.classes[c - 1].slot_bytes + 1, k.slot_bytes, k.free_slots * k.slot_bytes, k.free_slots);
  fputs("</sizes>\n", stream);
  const auto write_totals = [&](const char* mapped) {
    const uint64_t current = s.small_span_bytes + s.run_bytes + s.free_dirty_bytes, most = s.committed_bytes + s.kept_bytes;
    fprintf(stream,
            "<total type=\"fast\" count=\"0\" size=\"0\"/>\n<total type=\"rest\" count=\"%" PRIu64 "\" size=\"%" PRIu64
            "\"/>\n%s<system type=\"current\" size=\"%" PRIu64 "\"/>\n<system type=\"max\" size=\"%" PRIu64
            "\"/>\n<aspace type=\"total\" size=\"%" PRIu64 "\"/>\n<aspace type=\"mprotect\" size=\"%" PRIu64 "\"/>\n",
            t.free_slots + (s.free_dirty_bytes + kSpanBytes - 1) / kSpanBytes, t.free_slot_bytes + s.free_dirty_bytes,
            mapped, current, most, most, most);
  };
  write_totals("");
  fprintf(stream, "</heap>\n<freehold version=\"%" PRIu32 "\">\n", s.version);
  for (uint32_t c = 0; c < s.class_count; ++c)
    if (const alloc::ClassStats& k = s.classes[c]; k.spans != 0)
      fprintf(stream, "  <class slot=\"%" PRIu64 "\" spans=\"%" PRIu64 "\" slots=\"%" PRIu64 "\" free=\"%" PRIu64 "\"/>\n",
              k.slot_bytes, k.spans, k.slots, k.free_slots);
  fprintf(stream,
          "  <runs size=\"%" PRIu64 "\"/>\n  <retained size=\"%" PRIu64 "\"/>\n  <reserved size=\"%" PRIu64
          "\"/>\n</freehold>\n",
          s.run_bytes, s.free_dirty_bytes, s.reserved_bytes);
  char mapped[96];
  snprintf(mapped, sizeof mapped, "<total type=\"mmap\" count=\"%" PRIu64 "\" size=\"%" PRIu64 "\"/>\n", s.direct_blocks,
           s.direct_bytes);
  write_totals(mapped);
  fputs("</malloc>\n", stream);
  return 0;
}

}  // extern "C"

#endif  // __GLIBC__
