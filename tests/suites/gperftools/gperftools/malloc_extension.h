// SPDX-License-Identifier: MIT
/* tcmalloc's statistics, as far as mallinfo2 knows them. */
#ifndef FREEHOLD_SUITES_GPERFTOOLS_MALLOC_EXTENSION_H
#define FREEHOLD_SUITES_GPERFTOOLS_MALLOC_EXTENSION_H

#include <malloc.h>
#include <stdio.h>
#include <string.h>

class MallocExtension {
 public:
  static MallocExtension* instance() {
    static MallocExtension one;
    return &one;
  }
  void GetStats(char* text, int bytes) {
    snprintf(text, static_cast<size_t>(bytes), "%zu bytes from the system, %zu in use", mallinfo2().arena,
             mallinfo2().uordblks);
  }
  bool GetNumericProperty(const char* name, size_t* value) {
    if (strcmp(name, "generic.heap_size") != 0) return false;
    const struct mallinfo2 info = mallinfo2();
    *value = info.arena + info.hblkhd;
    return true;
  }
};

#endif
