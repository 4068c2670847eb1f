// SPDX-License-Identifier: MIT
// The same in C.
#include <stdlib.h>

#include "freehold/heap_scope.h"
#include "freehold/malloc.h"

int main(void) {
  freehold_heap_options_t options = {.size = sizeof options, .name = "blocks"};
  freehold_heap_t* heap = freehold_heap_create(&options);
  freehold_heap_stats_t stats;
  freehold_count_t counts;
  if (heap == NULL || freehold_count_begin(FREEHOLD_COUNT) != 0 || freehold_heap_enter(heap) != 0) return EXIT_FAILURE;
  char* volatile block = malloc(100);
  freehold_heap_leave();
  if (freehold_count_end(&counts, sizeof counts) != 0 || freehold_heap_stats(heap, &stats, sizeof stats) != 0)
    return EXIT_FAILURE;
  const uint64_t blocks = stats.live_objects;
  free(block);
  if (freehold_heap_stats(heap, &stats, sizeof stats) != 0) return EXIT_FAILURE;
  freehold_heap_destroy(heap);
  return counts.allocations == 1 && blocks == 1 && stats.live_objects == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
