// SPDX-License-Identifier: MIT
/* The statistics of freehold/malloc.h from C: right figures, and structs of the caller's that are smaller or larger than the
   library's. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "freehold/malloc.h"
#include "tests/linking/check.h"

static void check_figures(void) {
  enum { kBlocks = 1000, kBytes = 100, kRun = 200 * 1024, kDirect = 64 * 1024 * 1024 };
  static void* blocks[kBlocks];
  freehold_stats_t before, after;
  CHECK(freehold_stats(&before, sizeof before) == 0);
  CHECK(before.size == sizeof before && before.version == FREEHOLD_STATS_VERSION);
  for (int i = 0; i < kBlocks; ++i) CHECK((blocks[i] = malloc(kBytes)) != NULL);
  void* volatile run = malloc(kRun);
  void* volatile direct = malloc(kDirect);
  CHECK(run != NULL && direct != NULL);
  CHECK(freehold_stats(&after, sizeof after) == 0);
  CHECK(after.small_span_bytes >= kBlocks * kBytes);
  CHECK(after.run_bytes >= before.run_bytes + kRun);
  CHECK(after.run_bytes + after.direct_bytes >= before.run_bytes + before.direct_bytes + kRun + kDirect);
  CHECK(after.reserved_bytes >= after.committed_bytes);
  CHECK(after.threads >= 1 && after.peak_threads >= after.threads);
  CHECK(after.cpus >= 1);
  CHECK(strcmp(after.cpus_source, "affinity") == 0 || strcmp(after.cpus_source, "cgroup") == 0);
  CHECK(strcmp(after.cache_mode, "thread") == 0 || strcmp(after.cache_mode, "cpu") == 0);
  const char* mode = getenv("EXPECTED_CACHE_MODE");
  CHECK(mode == NULL || strcmp(after.cache_mode, mode) == 0);
  for (int i = 0; i < kBlocks; ++i) free(blocks[i]);
  free(run);
  free(direct);
}

/* A program of an older version: bytes behind its struct are not touched. */
static void check_smaller_struct(void) {
  freehold_stats_t whole;
  unsigned char bytes[sizeof whole];
  const size_t size = offsetof(freehold_stats_t, run_bytes);
  memset(bytes, 0xA5, sizeof bytes);
  CHECK(freehold_stats((freehold_stats_t*)(void*)bytes, size) == 0);
  memcpy(&whole, bytes, sizeof whole);
  CHECK(whole.size == size);
  CHECK(whole.version == FREEHOLD_STATS_VERSION && whole.committed_bytes > 0);
  for (size_t i = size; i < sizeof bytes; ++i) CHECK(bytes[i] == 0xA5);
}

/* A program of a newer version: what the library does not know is zero, and `size` says how much it knows. */
static void check_larger_struct(void) {
  struct {
    freehold_stats_t known;
    unsigned char appended[100];
  } out;
  memset(&out, 0xA5, sizeof out);
  CHECK(freehold_stats(&out.known, sizeof out) == 0);
  CHECK(out.known.size == sizeof out.known);
  CHECK(out.known.committed_bytes > 0);
  for (size_t i = 0; i < sizeof out.appended; ++i) CHECK(out.appended[i] == 0);
}

static void check_classes(void) {
  enum { kMost = 200 };
  static freehold_class_stats_t classes[kMost];
  static struct {
    freehold_class_stats_t known;
    uint64_t appended;
  } newer[kMost];
  static uint64_t older[kMost]; /* slot_bytes alone */
  freehold_stats_t stats;
  void* volatile block = malloc(100);
  CHECK(block != NULL);
  CHECK(freehold_stats(&stats, sizeof stats) == 0);
  memset(classes, 0xA5, sizeof classes);
  const size_t count = freehold_class_stats(classes, kMost, sizeof classes[0]);
  CHECK(count == stats.class_count && count > 10 && count < kMost);
  uint64_t slots = 0;
  for (size_t c = 0; c < count; ++c) {
    CHECK(c == 0 || classes[c].slot_bytes > classes[c - 1].slot_bytes);
    CHECK(classes[c].free_slots <= classes[c].slots);
    slots += classes[c].slots;
  }
  CHECK(slots > 0);
  CHECK(classes[count].slot_bytes == UINT64_C(0xA5A5A5A5A5A5A5A5));

  memset(newer, 0xA5, sizeof newer);
  CHECK(freehold_class_stats(&newer[0].known, kMost, sizeof newer[0]) == count);
  CHECK(freehold_class_stats((freehold_class_stats_t*)(void*)older, kMost, sizeof older[0]) == count);
  for (size_t c = 0; c < count; ++c) {
    CHECK(newer[c].known.slot_bytes == classes[c].slot_bytes && newer[c].appended == 0);
    CHECK(older[c] == classes[c].slot_bytes);
  }
  CHECK(freehold_class_stats(NULL, 0, sizeof classes[0]) == count);
  classes[3].slot_bytes = 1;
  CHECK(freehold_class_stats(classes, 3, sizeof classes[0]) == count && classes[3].slot_bytes == 1);
  free(block);
}

static void check_refusals(void) {
  freehold_stats_t stats;
  errno = 0;
  CHECK(freehold_stats(NULL, sizeof stats) == -1 && errno == EINVAL);
  errno = 0;
  CHECK(freehold_stats(&stats, sizeof stats.size) == -1 && errno == EINVAL);
  errno = 0;
  CHECK(freehold_class_stats(NULL, 1, sizeof(freehold_class_stats_t)) == 0 && errno == EINVAL);
  errno = 0;
  CHECK(freehold_class_stats(NULL, 0, 0) == 0 && errno == EINVAL);
}

/* A limit of 0 refuses what takes new memory; FREEHOLD_NO_LIMIT ends it. */
static void check_limit(void) {
  CHECK(freehold_set_limit(0) == FREEHOLD_NO_LIMIT);
  void* volatile block = malloc(64 << 20);
  CHECK(block == NULL && errno == ENOMEM);
  CHECK(freehold_set_limit(1 << 30) != FREEHOLD_NO_LIMIT);
  CHECK(freehold_set_limit(FREEHOLD_NO_LIMIT) == 1 << 30);
  block = malloc(64 << 20);
  CHECK(block != NULL);
  free(block);
}

int main(void) {
  CHECK(freehold_is_active() == 1);
  check_figures();
  check_smaller_struct();
  check_larger_struct();
  check_classes();
  check_refusals();
  check_limit();
  return 0;
}
