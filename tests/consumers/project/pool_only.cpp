// SPDX-License-Identifier: MIT
// A program that asks for a part gets that part alone: the process's malloc is still libc's.
#include <dlfcn.h>

#include <cstdlib>

#include "freehold/pool.hpp"

int main() {
  Dl_info own, libc;
  if (dladdr(dlsym(RTLD_DEFAULT, "malloc"), &own) == 0) return EXIT_FAILURE;
  if (dladdr(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"), &libc) == 0) return EXIT_FAILURE;
  freehold::ObjectPool<int> pool(8);
  return pool.make(7) != nullptr && own.dli_fbase == libc.dli_fbase ? EXIT_SUCCESS : EXIT_FAILURE;
}
