// SPDX-License-Identifier: MIT
/* Under LD_PRELOAD with the shim before or behind Freehold. argv[1]: "before", the shim sees every call and Freehold still
   serves it; "behind", Freehold comes first and the shim sees none of this program's calls. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

#include "tests/linking/check.h"

static void* look_up(const char* name) {
  void* found = dlsym(RTLD_DEFAULT, name);
  CHECK(found != NULL);
  return found;
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  int (*is_active)(void);
  void (*shim_counts)(unsigned long*, unsigned long*);
  *(void**)&is_active = look_up("freehold_is_active");
  *(void**)&shim_counts = look_up("shim_counts");
  CHECK(is_active() == 1);
  unsigned long mallocs[2], frees[2];
  shim_counts(&mallocs[0], &frees[0]);
  for (size_t i = 0; i < 1000; ++i) {
    char* volatile block = malloc(i + 1);
    CHECK(block != NULL);
    memset(block, 1, i + 1);
    block = realloc(block, 2 * i + 2); /* what the shim leaves out is Freehold's all the same */
    CHECK(block != NULL && block[i] == 1);
    free(block);
    free(calloc(1, i + 1));
  }
  shim_counts(&mallocs[1], &frees[1]);
  if (strcmp(argv[1], "before") == 0) {
    CHECK(mallocs[1] - mallocs[0] >= 1000 && frees[1] - frees[0] >= 2000);
  } else {
    CHECK(mallocs[1] == mallocs[0] && frees[1] == frees[0]);
  }
  return 0;
}
