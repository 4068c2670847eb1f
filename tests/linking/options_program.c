// SPDX-License-Identifier: MIT
/* A program with compiled-in options, some of them wrong. Freehold reports the wrong ones on standard error. */
#include <stdlib.h>

#include "freehold/malloc.h"
#include "tests/linking/check.h"

const char* freehold_options = "verbose:1,cache:thread,huge_pages:never,no_such:1,purge_delay_ms:50";

int main(void) {
  char* volatile block = malloc(100);
  CHECK(block != NULL);
  free(block);
  return 0;
}
