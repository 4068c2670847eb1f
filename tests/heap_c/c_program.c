// SPDX-License-Identifier: MIT
/* The private heaps' C interface from C, linked as C. Exits with 1 at the first failure, and says where. */
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "freehold/heap.h"
#include "tests/linking/check.h"

static uint64_t live(freehold_heap_t* heap) {
  freehold_heap_stats_t stats;
  CHECK(freehold_heap_stats(heap, &stats, sizeof stats) == 0);
  CHECK(stats.live_bytes <= stats.used_bytes && stats.used_bytes <= stats.held_bytes);
  return stats.live_objects;
}

static void check_blocks(freehold_heap_t* heap) {
  freehold_heap_free(heap, NULL);
  freehold_heap_free_sized(heap, NULL, 10);
  CHECK(freehold_heap_usable_size(heap, NULL) == 0);
  /* Dirty memory first, so that calloc has something to zero. */
  for (size_t bytes = 0; bytes < 60000; bytes += bytes / 2 + 1) {
    unsigned char* block = freehold_heap_malloc(heap, bytes);
    CHECK(block != NULL && (uintptr_t)block % 16 == 0 && freehold_heap_usable_size(heap, block) >= bytes);
    memset(block, 0xab, freehold_heap_usable_size(heap, block));
    freehold_heap_free_sized(heap, block, bytes);
    block = freehold_heap_calloc(heap, bytes, 1);
    CHECK(block != NULL && reads_back(block, bytes, 0));
    memset(block, 0xab, bytes);
    freehold_heap_free_sized(heap, block, bytes);
    block = freehold_heap_calloc(heap, 7, bytes / 7);
    CHECK(block != NULL && reads_back(block, bytes / 7 * 7, 0));
    freehold_heap_free(heap, block);
  }
  for (size_t alignment = 1; alignment <= (size_t)1 << 20; alignment *= 2) {
    void* block = freehold_heap_aligned_alloc(heap, alignment, 100);
    CHECK(block != NULL && (uintptr_t)block % alignment == 0);
    memset(block, 1, 100);
    freehold_heap_free(heap, block);
  }
  unsigned char* block = freehold_heap_realloc(heap, NULL, 10);
  CHECK(block != NULL);
  memset(block, 7, 10);
  for (size_t bytes = 10; bytes < 200000; bytes += bytes / 3) {
    block = freehold_heap_realloc(heap, block, bytes);
    CHECK(block != NULL && (uintptr_t)block % 16 == 0 && reads_back(block, 10, 7));
    memset(block + 10, 8, bytes - 10);
  }
  block = freehold_heap_realloc(heap, block, 5);
  CHECK(block != NULL && reads_back(block, 5, 7) && live(heap) == 1);
  freehold_heap_free_sized(heap, block, 5);
  CHECK(live(heap) == 0);
}

static void check_errors(freehold_heap_t* heap) {
  /* Not constants, which the compilers would warn of. */
  volatile size_t most = SIZE_MAX, huge = (size_t)1 << 40, zero = 0, odd = 24;
  unsigned char* block = freehold_heap_malloc(heap, 5);
  memset(block, 7, 5);
#define FAILS(call, error) (errno = 0, (call) == NULL && errno == (error))
  CHECK(FAILS(freehold_heap_malloc(heap, most), ENOMEM));
  CHECK(FAILS(freehold_heap_malloc(heap, most - 15), ENOMEM));
  CHECK(FAILS(freehold_heap_calloc(heap, most / 2, 3), ENOMEM));
  CHECK(FAILS(freehold_heap_calloc(heap, 1, most), ENOMEM));
  CHECK(FAILS(freehold_heap_realloc(heap, block, most - 100), ENOMEM));
  CHECK(FAILS(freehold_heap_aligned_alloc(heap, huge, 10), ENOMEM));
  CHECK(FAILS(freehold_heap_aligned_alloc(heap, zero, 10), EINVAL));
  CHECK(FAILS(freehold_heap_aligned_alloc(heap, odd, 10), EINVAL));
  CHECK(FAILS(freehold_heap_aligned_alloc(heap, most, 10), EINVAL));
  freehold_heap_stats_t stats[2]; /* what a program of a newer version might ask for */
  memset(stats, 1, sizeof stats);
  CHECK(freehold_heap_stats(heap, stats, sizeof stats) == 0);
  CHECK(stats[0].live_objects == live(heap) && stats[0].size == sizeof stats[0]);
  CHECK(stats[1].name == NULL && stats[1].conflicts == 0);
  errno = 0;
  CHECK(freehold_heap_stats(heap, NULL, sizeof stats) == -1 && errno == EINVAL);
  CHECK(reads_back(block, 5, 7));
  freehold_heap_free(heap, block);
}

static void check_whole(freehold_heap_t* heap) {
  freehold_heap_stats_t stats;
  for (int i = 0; i < 20000; ++i) CHECK(freehold_heap_malloc(heap, (size_t)(i % 300)) != NULL);
  CHECK(freehold_heap_malloc(heap, 100000) != NULL && live(heap) == 20001);
  freehold_heap_release_all(heap);
  CHECK(live(heap) == 0);
  CHECK(freehold_heap_reserve(heap, 1 << 20) == 0);
  CHECK(freehold_heap_stats(heap, &stats, sizeof stats) == 0 && stats.held_bytes >= 1 << 20);
  CHECK(freehold_heap_trim(heap) >= 15 << 16);
  uint64_t few[4] = {0, 0, 7, 7}; /* what a program of an older version might ask for */
  CHECK(freehold_heap_stats(heap, (freehold_heap_stats_t*)(void*)few, 24) == 0);
  CHECK(few[0] == 24 && few[2] == 0 && few[3] == 7);
}

static int refuses(void* context, size_t bytes) {
  *(size_t*)context += bytes;
  return 0;
}
static void check_limit(int kind) {
  size_t asked = 0;
  freehold_heap_options_t options = {.size = sizeof options};
  options.kind = kind;
  options.name = "limited";
  options.limit_bytes = 100000;
  options.on_limit = refuses;
  options.on_limit_context = &asked;
  freehold_heap_t* heap = freehold_heap_create(&options);
  CHECK(heap != NULL);
  unsigned char* block = freehold_heap_malloc(heap, 90000);
  CHECK(block != NULL && asked == 0);
  errno = 0;
  CHECK(freehold_heap_malloc(heap, 20000) == NULL && errno == ENOMEM && asked == 20000);
  errno = 0;
  CHECK(freehold_heap_reserve(heap, 20000) == -1 && errno == ENOMEM);
  freehold_heap_stats_t stats;
  CHECK(freehold_heap_stats(heap, &stats, sizeof stats) == 0);
  CHECK(strcmp(stats.name, "limited") == 0 && stats.limit_bytes == 100000 && stats.large_blocks == 1);
  freehold_heap_destroy(heap);
}

static void check_options(void) {
  freehold_heap_options_t options = {.size = sizeof options};
  freehold_heap_destroy(NULL);
  options.size = offsetof(freehold_heap_options_t, binds_node) - 1;
  CHECK(FAILS(freehold_heap_create(&options), EINVAL));
  options.size = 0;
  CHECK(FAILS(freehold_heap_create(&options), EINVAL));
  /* From a program that knows no nodes. */
  options.size = offsetof(freehold_heap_options_t, binds_node);
  options.binds_node = 1;
  options.node = -5;
  freehold_heap_t* first = freehold_heap_create(&options);
  CHECK(first != NULL);
  freehold_heap_destroy(first);
  options.size = sizeof options;
  CHECK(FAILS(freehold_heap_create(&options), EINVAL));
  options.node = 0;
  freehold_heap_t* bound = freehold_heap_create(&options);
  CHECK(bound != NULL);
  unsigned char* block = freehold_heap_malloc(bound, 100000);
  CHECK(block != NULL);
  memset(block, 1, 100000);
  freehold_heap_destroy(bound);
  options.binds_node = 0;
  options.kind = 2;
  CHECK(FAILS(freehold_heap_create(&options), EINVAL));
  options.kind = FREEHOLD_HEAP_OWNER_LOCKED;
  options.waits = 1;
  CHECK(FAILS(freehold_heap_create(&options), EINVAL));
  /* From a later version: good as long as it says nothing that is not known here. */
  struct {
    freehold_heap_options_t known;
    size_t more;
  } later = {{.size = sizeof later}, 0};
  freehold_heap_t* heap = freehold_heap_create(&later.known);
  CHECK(heap != NULL);
  freehold_heap_destroy(heap);
  later.more = 1;
  CHECK(FAILS(freehold_heap_create(&later.known), EINVAL));
}

static void* waits_for_room(void* heap) {
  void* block = freehold_heap_malloc(heap, 60000);
  CHECK(block != NULL);
  freehold_heap_free(heap, block);
  return NULL;
}
static void check_waiting(void) {
  freehold_heap_options_t options = {.size = sizeof options};
  options.limit_bytes = 100000;
  options.waits = 1;
  freehold_heap_t* heap = freehold_heap_create(&options);
  void* block = freehold_heap_malloc(heap, 60000);
  CHECK(heap != NULL && block != NULL);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, waits_for_room, heap) == 0);
  freehold_heap_free_sized(heap, block, 60000);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(live(heap) == 0);
  freehold_heap_destroy(heap);
}

int main(void) {
  for (int kind = FREEHOLD_HEAP_SHARED; kind <= FREEHOLD_HEAP_OWNER_LOCKED; ++kind) {
    freehold_heap_options_t options = {.size = sizeof options};
    options.kind = kind;
    freehold_heap_t* heap = freehold_heap_create(&options);
    CHECK(heap != NULL);
    check_blocks(heap);
    check_errors(heap);
    check_whole(heap);
    CHECK(freehold_heap_malloc(heap, 10) != NULL); /* ends with the heap */
    freehold_heap_destroy(heap);
    check_limit(kind);
  }
  freehold_heap_t* heap = freehold_heap_create(NULL);
  CHECK(heap != NULL && freehold_heap_malloc(heap, 1) != NULL);
  freehold_heap_destroy(heap);
  check_options();
  check_waiting();
  return EXIT_SUCCESS;
}
