// SPDX-License-Identifier: MIT
/* The same in C, through the shared library. */
#include <stdlib.h>

#include "freehold/process.h"

int main(void) {
  freehold_process_pool_options_t options = {
      .size = sizeof options, .component = "./no_such_component.so", .max_attempts = 1};
  freehold_process_pool_t* pool = freehold_process_pool_create(&options);
  if (pool == NULL) return EXIT_FAILURE;
  char output[16];
  size_t bytes = 0;
  const int result = freehold_process_pool_call(pool, "input", 5, NULL, output, sizeof output, &bytes, NULL);
  freehold_process_pool_destroy(pool);
  return result != 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
