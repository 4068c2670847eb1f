// SPDX-License-Identifier: MIT
// Loops that take a block and free it at once, and keep one in so many, at a site each: at every turn the same slot is free.
// Says what is kept: "name blocks bytes".
#include <stdio.h>
#include <stdlib.h>

#define SITE(name)                                                       \
  __attribute__((noinline)) void* name(size_t bytes) {                   \
    void* volatile block = malloc(bytes);                                \
    if (block == NULL) abort();                                          \
    return block;                                                        \
  }                                                                      \
  static void loop_of_##name(size_t bytes, size_t kept, size_t one_in) { \
    for (size_t i = 1; i <= kept * one_in; ++i) {                        \
      void* const block = name(bytes);                                   \
      if (i % one_in != 0) free(block);                                  \
    }                                                                    \
    printf("%s %zu %zu\n", #name, kept, kept* bytes);                    \
  }
SITE(one_in_66_site)
SITE(one_in_300_site)
SITE(one_in_2000_site)

int main(void) {
  enum { kBytes = 16 << 20 };  // bytes of each site
  loop_of_one_in_66_site(100, kBytes / 100, 66);
  loop_of_one_in_300_site(400, kBytes / 400, 300);
  loop_of_one_in_2000_site(3000, kBytes / 3000, 2000);
  return 0;
}
