// SPDX-License-Identifier: MIT
/* Frees what it allocates, in two threads, and prints. With an argument it keeps a copy of that. Linked with the C++
 * runtime, which holds memory of its own. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void* work(void* nothing) {
  void* volatile block = malloc(100);
  free(block);
  return nothing;
}

int main(int count, char** words) {
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, work, NULL);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  if (count > 1) {
    char* volatile kept = strdup(words[1]);
    if (kept == NULL) return 1;
  }
  puts("clean");
  return 0;
}
