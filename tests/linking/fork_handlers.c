/* SPDX-License-Identifier: MIT
 * A handler of fork, registered before the program's first malloc, takes a lock that another thread holds over malloc. With
 * glibc's malloc the thread goes on, since its locks are taken after the handlers. Ten times a hundred blocks by
 * malloc and realloc while a fork waits: 20 s are enough only if none of them waits for the fork. With EARLY the handler is
 * registered before those of any library, so that malloc does wait for the fork: each block must come. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int g_waits;

static void before(void) {
  g_waits = 1;
  pthread_mutex_lock(&g_lock);
}
static void after(void) { pthread_mutex_unlock(&g_lock); }

static void* forks(void* failed) {
  const pid_t child = fork();
  int status = 1;
  if (child == 0) _exit(0);
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) *(int*)failed = 1;
  return NULL;
}

static void register_handlers(void) { (void)pthread_atfork(before, after, after); }

#ifdef EARLY
enum { kRounds = 1, kBlocks = 1 };
__attribute__((section(".preinit_array"), used)) static void (*const g_early)(void) = register_handlers;
#else
enum { kRounds = 10, kBlocks = 100 };
#endif

int main(void) {
  int failed = 0;
  alarm(20);
#ifndef EARLY
  register_handlers();
#endif
  for (int round = 0; round < kRounds; ++round) {
    pthread_t thread;
    char* older = malloc(100);
    if (older == NULL) return 3;
    older[0] = 1;
    pthread_mutex_lock(&g_lock);
    g_waits = 0;
    if (pthread_create(&thread, NULL, forks, &failed) != 0) return 2;
    while (!g_waits) usleep(1000);
    older = realloc(older, 1000);
    if (older == NULL || older[0] != 1) return 5;
    for (size_t i = 1; i <= kBlocks; ++i) {
      char* block = malloc(i * 100);
      if (block == NULL) return 3;
      block[0] = 1;
      block = realloc(block, i * 1000);
      if (block == NULL || block[0] != 1) return 4;
      free(block);
    }
    pthread_mutex_unlock(&g_lock);
    pthread_join(thread, NULL);
    free(older);
  }
  return failed;
}
