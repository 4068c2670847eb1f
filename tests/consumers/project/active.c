// SPDX-License-Identifier: MIT
// A C program that asks for Freehold: its malloc, and the one that libc itself calls, is Freehold's.
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>

#include "freehold/malloc.h"

int main(void) {
  char* mine = malloc(12);
  char* from_libc = strdup("hello");
  const int active = mine != NULL && from_libc != NULL && strcmp(from_libc, "hello") == 0 && freehold_is_active();
  free(from_libc);
  free(mine);
  return active ? EXIT_SUCCESS : EXIT_FAILURE;
}
