// SPDX-License-Identifier: MIT
// This program's malloc is Freehold's, as Freehold itself says and as its figures show.
#include <freehold/malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kBlocks = 1000, kBytes = 10000 };

int main(void) {
  static char* blocks[kBlocks];
  freehold_stats_t before, after;
  if (!freehold_is_active()) {
    puts("malloc is not Freehold's");
    return 1;
  }
  freehold_stats(&before, sizeof before);
  for (int i = 0; i < kBlocks; ++i) {
    blocks[i] = malloc(kBytes);
    memset(blocks[i], i, kBytes);
  }
  freehold_stats(&after, sizeof after);
  if (after.small_span_bytes < before.small_span_bytes + (uint64_t)kBlocks * kBytes / 2) {
    puts("the blocks of this program are not in Freehold's figures");
    return 1;
  }
  for (int i = 0; i < kBlocks; ++i) free(blocks[i]);
  puts("malloc is Freehold's");
  return 0;
}
