// SPDX-License-Identifier: MIT
/* A C program under LD_PRELOAD that loads a C++ library with local names, as an interpreter loads its extensions. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>

#include "tests/linking/check.h"

typedef int (*Function)(void);

static Function look_up(void* library, const char* name) {
  Function function;
  *(void**)&function = dlsym(library, name);
  CHECK(function != NULL);
  return function;
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  CHECK(dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD) == NULL); /* or this test shows nothing */
  CHECK(look_up(RTLD_DEFAULT, "freehold_is_active")() == 1);
  void* plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  CHECK(plugin != NULL);
  CHECK(look_up(plugin, "plugin_catches_bad_alloc")() == 6);
  CHECK(look_up(plugin, "plugin_calls_its_handler")() == 2);
  alarm(30); /* rather than for ever */
  CHECK(look_up(plugin, "plugin_new_nothrow_calls_its_handler")() == 0);
  CHECK(dlclose(plugin) == 0);
  return 0;
}
