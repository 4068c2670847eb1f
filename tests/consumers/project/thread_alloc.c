// SPDX-License-Identifier: MIT
// A C program with the thread_alloc API on any backend; its malloc stays libc's.
#include <stdlib.h>
#include <string.h>

#include "freehold/thread_alloc.h"

int main(void) {
  char* text = thread_alloc(6);
  if (text == NULL) return EXIT_FAILURE;
  memcpy(text, "hello", 6);
  char* longer = thread_realloc(text, 1000);
  const int kept = longer != NULL && strcmp(longer, "hello") == 0;
  thread_free(longer);
  return kept ? EXIT_SUCCESS : EXIT_FAILURE;
}
