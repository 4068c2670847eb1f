/* A program that carries its options, some of them wrong; what Freehold says of them is on standard error. */
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
