// SPDX-License-Identifier: MIT
// Threads that do not run for most of the time; nothing is allocated after the start.
//   sleep  the work is cut in pieces with a sleep between, which only the holder of one turn may take: sleeps do not overlap
//   pipe   two threads send each other a byte through pipes, and compute only while they have it
//   few    one thread takes all tasks; the others end at once
#include <unistd.h>

#include "tests/doctor/corpus/programs/common.h"

static const char* mode;
static int threads;
static long rounds;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static int pipes[2][2];

static uint64_t sleeping(long index) {
  uint64_t value = 5 + (uint64_t)index;
  for (long i = index; i < rounds; i += threads) {
    value = mix(value, 100000);
    pthread_mutex_lock(&turn);
    usleep(2500);
    pthread_mutex_unlock(&turn);
  }
  return value;
}

static uint64_t through_pipes(long index) {
  uint64_t value = 5 + (uint64_t)index;
  char byte = 1;
  if (index > 1) return 0;
  if (index == 0 && write(pipes[1][1], &byte, 1) != 1) abort();
  for (long i = 0; i < rounds; ++i) {
    if (read(pipes[!index][0], &byte, 1) != 1) abort();
    value = mix(value, 10000);
    if (write(pipes[index][1], &byte, 1) != 1) abort();
  }
  return value;
}

static void* work(void* index) {
  uint64_t value = 0;
  if (!strcmp(mode, "sleep"))
    value = sleeping((long)index);
  else if (!strcmp(mode, "pipe"))
    value = through_pipes((long)index);
  else if (index == NULL)
    value = mix(5, rounds * 1500000);
  return (void*)(uintptr_t)value;
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  threads = atoi(argv[1]);
  mode = argv[2];
  rounds = atol(argv[3]);
  if (pipe(pipes[0]) || pipe(pipes[1])) return 1;
  printf("%s %p\n", mode, in_threads(threads, work));
}
