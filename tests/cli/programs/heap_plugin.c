// SPDX-License-Identifier: MIT
// A library that allocates and is unloaded.
#include <stdlib.h>

void* plugin_site(size_t bytes) {
  void* volatile block = malloc(bytes);
  return block;
}
