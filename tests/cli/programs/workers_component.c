// SPDX-License-Identifier: MIT
/* A component that does what its task says: "upper TEXT", "crash", "exit N", "refuse N", "sleep MS", "pid", "lines", "print
 * TEXT", "again N FILE" (returns N and adds a byte to the file until it has two). */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "freehold/component.h"

static int is(const char* task, const char* word) { return strncmp(task, word, strlen(word)) == 0; }

static void sleep_ms(long ms) {
  struct timespec left = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&left, NULL);
}

/* Adds the letter to the file, 0: nothing. Returns how long it is then. */
static long append(const char* name, char letter) {
  FILE* const file = fopen(name, "a");
  if (file == NULL) return -1;
  if (letter != 0) fputc(letter, file);
  fseek(file, 0, SEEK_END);
  const long bytes = ftell(file);
  fclose(file);
  return bytes;
}

int freehold_run(const void* input, size_t input_bytes, void* output, size_t capacity, size_t* output_bytes) {
  char task[256] = {0};
  memcpy(task, input, input_bytes < sizeof task - 1 ? input_bytes : sizeof task - 1);
  if (is(task, "crash")) abort();
  if (is(task, "exit ")) exit(atoi(task + 5));
  if (is(task, "refuse ")) return atoi(task + 7);
  if (is(task, "sleep ")) sleep_ms(atol(task + 6));
  if (is(task, "again ")) {
    const char* const file = strrchr(task, ' ') + 1;
    if (append(file, 0) < 2 && append(file, 'x') > 0) return atoi(task + 6);
  }
  if (is(task, "print ")) printf("%s\n", task + 6), fflush(stdout);
  if (is(task, "lines")) {
    *output_bytes = (size_t)snprintf(output, capacity, "a\nb\n");
  } else if (is(task, "pid")) {
    *output_bytes = (size_t)snprintf(output, capacity, "pid %d\n", (int)getpid());
  } else {
    if (input_bytes > capacity) return 1;
    for (size_t i = 0; i < input_bytes; ++i) ((char*)output)[i] = (char)toupper(((const unsigned char*)input)[i]);
    *output_bytes = input_bytes;
  }
  return 0;
}
