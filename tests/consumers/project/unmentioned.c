// SPDX-License-Identifier: MIT
// Linking is enough: no source mentions Freehold or malloc, and still the process's malloc is not libc's.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  Dl_info own, libc;
  if (!dladdr(dlsym(RTLD_DEFAULT, "malloc"), &own) || !dladdr(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"), &libc)) {
    return EXIT_FAILURE;
  }
  printf("malloc is in %s\n", own.dli_fname);
  return own.dli_fbase != libc.dli_fbase ? EXIT_SUCCESS : EXIT_FAILURE;
}
