// SPDX-License-Identifier: MIT
/* Nothing to call: whoever links freehold::malloc has Freehold's malloc. freehold.h is for those who want to be sure, to
   look inside, or to give memory back now.
     target_link_libraries(your_program PRIVATE freehold::malloc) */
#include <stdio.h>
#include <stdlib.h>

#include "freehold/malloc.h"

int main(void) {
  for (int i = 0; i < 1000000; ++i) {
    char* volatile block = malloc(12);
    if (block == NULL) return EXIT_FAILURE;
    free(block);
  }
  freehold_trim();
  printf("malloc is %s, a million blocks came and went\n", freehold_is_active() ? "Freehold's" : "somebody else's");
  return EXIT_SUCCESS;
}
