// SPDX-License-Identifier: MIT
// Threads that hand the turn to each other by a condition variable, one computing while the other waits (condition), or put
// characters into one FILE, whose lock is taken for each (stdio). Or they meet at a barrier after every step, where the
// first one's step is ten times as long (barrier). Waiting for one's turn is both: the program's own lock, and too little at
// once.
#include "tests/doctor/corpus/programs/common.h"

static const char* mode;
static int threads;
static long rounds;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static long turn;
static pthread_barrier_t barrier;
static FILE* stream;

static uint64_t take_turns(long index) {
  uint64_t value = 7 + (uint64_t)index;
  for (long i = index; i < rounds; i += threads) {
    pthread_mutex_lock(&mutex);
    while (turn != i) pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
    value = mix(value, 20000);
    pthread_mutex_lock(&mutex);
    turn = i + 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
  }
  return value;
}

static uint64_t step_together(long index) {
  uint64_t value = 7 + (uint64_t)index;
  for (long i = 0; i < rounds; ++i) {
    value = mix(value, index ? 20000 / threads : 200000);
    pthread_barrier_wait(&barrier);
  }
  return value;
}

static void* work(void* index) {
  if (!strcmp(mode, "condition")) return (void*)(uintptr_t)take_turns((long)index);
  if (!strcmp(mode, "barrier")) return (void*)(uintptr_t)step_together((long)index);
  for (long i = 0; i < rounds / threads; ++i) putc('x', stream);
  return NULL;
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  threads = atoi(argv[1]);
  mode = argv[2];
  rounds = atol(argv[3]);
  stream = fopen("/dev/null", "w");
  pthread_barrier_init(&barrier, NULL, (unsigned)threads);
  printf("%s %p\n", mode, in_threads(threads, work));
}
