// SPDX-License-Identifier: MIT
/* A component for the examples of the process pool: the square of a number, as text. It has a bug: 13 ends the process. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "freehold/component.h"

int freehold_run(const void* input, size_t input_bytes, void* output, size_t capacity, size_t* output_bytes) {
  char text[24] = {0};
  if (input_bytes >= sizeof text) return 1;
  memcpy(text, input, input_bytes);
  const long number = strtol(text, NULL, 10);
  if (number == 13) abort();
  *output_bytes = (size_t)snprintf(output, capacity, "%ld", number * number);
  return 0;
}
