// SPDX-License-Identifier: MIT
// A C program with a private heap; its malloc stays libc's.
#include <stdlib.h>
#include <string.h>

#include "freehold/heap.h"

int main(void) {
  freehold_heap_options_t options = {.size = sizeof options, .name = "words"};
  freehold_heap_t* heap = freehold_heap_create(&options);
  if (heap == NULL) return EXIT_FAILURE;
  char* text = freehold_heap_malloc(heap, 6);
  if (text == NULL) return EXIT_FAILURE;
  memcpy(text, "hello", 6);
  text = freehold_heap_realloc(heap, text, 1000);
  const int kept = text != NULL && strcmp(text, "hello") == 0;
  freehold_heap_destroy(heap);
  return kept ? EXIT_SUCCESS : EXIT_FAILURE;
}
