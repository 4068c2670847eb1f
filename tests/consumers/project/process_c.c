// SPDX-License-Identifier: MIT
/* The same in C, through the shared library. */
#include <stdlib.h>

#include "freehold/process.h"

int main(void) {
  freehold_pool_options options = {.size = sizeof options, .component = "./no_such_component.so", .attempts = 1};
  char error[256] = "";
  freehold_pool* pool = freehold_pool_open(&options, error, sizeof error);
  if (pool == NULL) return error[0] != '\0' ? EXIT_SUCCESS : EXIT_FAILURE;
  char output[16];
  size_t bytes = 0;
  const int result = freehold_pool_call(pool, "input", 5, output, sizeof output, &bytes, NULL);
  freehold_pool_close(pool);
  return result != 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
