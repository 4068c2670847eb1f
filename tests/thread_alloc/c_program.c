// SPDX-License-Identifier: MIT
/* thread_alloc from C, linked as C. Exits with 1 at the first failure, and says where. */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "freehold/thread_alloc.h"
#include "tests/linking/check.h"

enum { kBlocks = 1000 };
static unsigned char* left_behind[kBlocks];
static size_t size_of(size_t i) { return 1 + i * 7 % 300; }

static void* allocate_and_exit(void* unused) {
  for (size_t i = 0; i < kBlocks; ++i) {
    left_behind[i] = thread_alloc(size_of(i));
    CHECK(left_behind[i] != NULL);
    memset(left_behind[i], (int)(i & 255), size_of(i));
  }
  return unused;
}

int main(void) {
  thread_free(NULL);

  unsigned char* block = thread_realloc(NULL, 10);
  CHECK(block != NULL);
  memset(block, 7, 10);
  for (size_t bytes = 10; bytes < 200000; bytes += bytes / 3) {
    block = thread_realloc(block, bytes);
    CHECK(block != NULL && (uintptr_t)block % 16 == 0 && reads_back(block, 10, 7));
    memset(block + 10, 8, bytes - 10);
  }
  block = thread_realloc(block, 5);
  CHECK(block != NULL && reads_back(block, 5, 7));

  volatile size_t absurd = SIZE_MAX - 100;
  errno = 0;
  CHECK(thread_alloc(absurd) == NULL && errno == ENOMEM);
  errno = 0;
  CHECK(thread_realloc(block, absurd) == NULL && errno == ENOMEM);
  CHECK(reads_back(block, 5, 7));
  thread_free(block);

  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, allocate_and_exit, NULL) == 0 && pthread_join(thread, NULL) == 0);
  for (size_t i = 0; i < kBlocks; ++i) {
    CHECK(reads_back(left_behind[i], size_of(i), (unsigned char)(i & 255)));
    thread_free(left_behind[i]);
  }
  return EXIT_SUCCESS;
}
