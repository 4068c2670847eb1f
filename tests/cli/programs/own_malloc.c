// SPDX-License-Identifier: MIT
/* A program with its own malloc built in, which no library that is preloaded comes before. */
#include <stdlib.h>
#include <unistd.h>

extern void* __libc_malloc(size_t bytes);
extern void __libc_free(void* block);

void* malloc(size_t bytes) { return __libc_malloc(bytes); }
void free(void* block) { __libc_free(block); }

int main(void) {
  free(malloc(100));
  usleep(100 * 1000);
  return 0;
}
