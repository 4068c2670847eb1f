// SPDX-License-Identifier: MIT
// Processes instead of threads, which share no malloc.
//   apart  each allocates and frees its own small blocks
//   lock   they share a mutex (PTHREAD_PROCESS_SHARED) in a shared mapping, and compute within it
//   spawn  the parent starts /bin/true again and again, and waits for each before the next
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/doctor/corpus/programs/common.h"

struct shared {
  pthread_mutex_t mutex;
  uint64_t value;
};

static void allocate(long rounds) {
  char* live[500] = {0};
  unsigned seed = 3;
  for (long i = 0; i < rounds; ++i) {
    seed = seed * 1664525u + 1013904223u;
    char** slot = &live[(seed >> 8) % 500];
    free(*slot);
    (*slot = malloc(16 + (seed >> 24)))[0] = 1;
  }
}

static void update(struct shared* shared, long rounds) {
  for (long i = 0; i < rounds; ++i) {
    pthread_mutex_lock(&shared->mutex);
    for (int k = 0; k < 300; ++k) shared->value = shared->value * 6364136223846793005u + 1442695040888963407u;
    pthread_mutex_unlock(&shared->mutex);
  }
}

static void spawn(long rounds) {
  char* words[] = {"true", NULL};
  char* environment[] = {NULL};
  for (long i = 0; i < rounds; ++i) {
    pid_t child;
    if (!posix_spawn(&child, "/bin/true", NULL, NULL, words, environment)) waitpid(child, NULL, 0);
  }
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int workers = atoi(argv[1]);
  const long rounds = atol(argv[3]) / workers;
  struct shared* shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&shared->mutex, &attributes);
  if (!strcmp(argv[2], "spawn"))
    spawn(rounds * workers);
  else
    for (int i = 0; i < workers; ++i)
      if (fork() == 0) {
        strcmp(argv[2], "lock") ? allocate(rounds) : update(shared, rounds);
        _exit(0);
      }
  while (wait(NULL) > 0) {
  }
  printf("%d workers, %llx\n", workers, (unsigned long long)shared->value);
}
