// SPDX-License-Identifier: MIT
/* The emptiest component: its output is its input. */
#include <string.h>

#include "freehold/component.h"

int freehold_run(const void* input, size_t input_bytes, void* output, size_t capacity, size_t* output_bytes) {
  if (input_bytes > capacity) return 1;
  memcpy(output, input, input_bytes);
  *output_bytes = input_bytes;
  return 0;
}
