// SPDX-License-Identifier: MIT
// The static command loads no shared library: one of this machine's glibc does not fit the glibc inside the command.
// elfutils would load libdebuginfod, and goes on without it; `freehold workers` cannot check a component and says so.
#include <dlfcn.h>

extern "C" {
void* dlopen(const char*, int) noexcept { return nullptr; }
void* dlsym(void*, const char*) noexcept { return nullptr; }
int dlclose(void*) noexcept { return -1; }
char* dlerror() noexcept {
  static char text[] = "the static command loads no libraries";
  return text;
}
}
