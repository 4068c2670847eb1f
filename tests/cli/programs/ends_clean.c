// SPDX-License-Identifier: MIT
/* Frees what it allocates, in two threads, and prints. With an argument it keeps a copy of that, and leaves the file of a
 * second open. The C library holds memory for what it is asked here, and so does the C++ runtime that is linked. */
#include <locale.h>
#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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
  if (count > 2 && fopen(words[2], "r") == NULL) return 1;
  setenv("TZ", "Europe/Berlin", 1);
  tzset();
  if (setlocale(LC_ALL, "C.UTF-8") == NULL || getpwuid(0) == NULL) return 1;
  puts("clean");
  return 0;
}
