// SPDX-License-Identifier: MIT
// Holds 24 MiB in blocks of 1000 bytes for 0.4 s, and ends without freeing them, as most programs do. With an argument it
// first closes all files but the standard ones.
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int main(int count, char** arguments) {
  enum { kBytes = 24 << 20, kBlock = 1000, kFiles = 1024 };
  (void)arguments;
  for (int file = 3; count > 1 && file < kFiles; ++file) close(file);
  const struct timespec time = {.tv_sec = 0, .tv_nsec = 400000000};
  for (int i = 0; i < kBytes / kBlock; ++i) {
    char* volatile block = malloc(kBlock);
    if (block == NULL) abort();
    memset(block, 1, kBlock);
  }
  nanosleep(&time, NULL);
  return 0;
}
