// SPDX-License-Identifier: MIT
/* A program whose functions of libc are wrapped (wrappers.c): it ends, its blocks keep their contents, errno is kept.
 *   wrappers_program [LIBRARY]   runs itself once for each kind of wrapper, which LIBRARY brings if it is given, by dlopen
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void (*g_lock)(void) = NULL;
static void (*g_unlock)(void) = NULL;
static void find(const char* name, void* function) {
  void* const found = dlsym(RTLD_DEFAULT, name);
  memcpy(function, &found, sizeof found);
}

static void wrong(const char* what) {
  fprintf(stderr, "%s, with WRAPPERS=%s\n", what, getenv("WRAPPERS"));
  _exit(1);
}

enum { kBlocks = 300, kRounds = 6000, kMostWaits = 3000 };
static void* work(void* argument) {
  static __thread unsigned char* blocks[kBlocks];
  static __thread size_t sizes[kBlocks];
  const int locks = g_lock != NULL && strchr(getenv("WRAPPERS"), 'l') != NULL;
  uint64_t x = (uintptr_t)argument * 7919 + 3;
  for (int round = 0; round < kRounds; ++round) {
    if (locks && round % 100 == 0) g_lock();
    x = x * 6364136223846793005U + 1442695040888963407U;
    const size_t i = (x >> 33) % kBlocks;
    const unsigned k = (x >> 20) & 1023;
    const size_t n = k < 850 ? 1 + (x >> 40) % 2000 : k < 1015 ? 1 + (x >> 40) % 200000 : 1 + (x >> 40) % 6000000;
    unsigned char* const block = blocks[i];
    const unsigned char stamp = (unsigned char)(sizes[i] * 31 + i);
    if (block != NULL && (block[0] != stamp || block[sizes[i] / 2] != stamp || block[sizes[i] - 1] != stamp))
      wrong("a block changed");
    errno = 77;
    if (block != NULL && k % 3 == 0) {
      blocks[i] = realloc(block, n);
    } else {
      free(block);
      blocks[i] = k % 5 == 0 ? calloc(1, n) : malloc(n);
    }
    if (blocks[i] == NULL) wrong("no memory");
    if (errno != 77) wrong("errno changed");
    sizes[i] = n;
    blocks[i][0] = blocks[i][n / 2] = blocks[i][n - 1] = (unsigned char)(n * 31 + i);
    if (round % 3000 == 2999) malloc_trim(0);
    if (locks && round % 100 == 99) g_unlock();
  }
  for (int i = 0; i < kBlocks; ++i) {
    free(blocks[i]);
    blocks[i] = NULL;
  }
  return NULL;
}

static int use_all(void) {
  for (int round = 0; round < 2; ++round) {
    pthread_t threads[3];
    for (uintptr_t i = 0; i < 3; ++i)
      if (pthread_create(&threads[i], NULL, work, (void*)(i + 1)) != 0) wrong("no thread");
    for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
    usleep(60000);
  }
  work(NULL);
  long* calls = NULL;
  find("g_wrapped_calls", &calls);
  if (calls == NULL || *calls < 0) wrong("no wrappers");
  return 0;
}

int main(int argc, char** argv) {
  if (getenv("WRAPPERS") != NULL) {
    if (argc > 1 && dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) == NULL) wrong(dlerror());
    find("wrappers_lock", &g_lock);
    find("wrappers_unlock", &g_unlock);
    return use_all();
  }
  static const char* const kKinds[] = {"m", "f", "q", "c", "t", "r", "l", "mfqctr"};
  int bad = 0;
  for (size_t i = 0; i < sizeof kKinds / sizeof *kKinds; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      setenv("WRAPPERS", kKinds[i], 1);
      execv("/proc/self/exe", argv);
      _exit(9);
    }
    int status = 0; /* not by an alarm, which a thread that hangs may have blocked */
    for (int waits = 0; waitpid(child, &status, WNOHANG) == 0; ++waits) {
      if (waits == kMostWaits) kill(child, SIGKILL);
      usleep(10000);
    }
    if (status == 0) continue;
    fprintf(stderr, "WRAPPERS=%s: %s\n", kKinds[i], WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "failed");
    ++bad;
  }
  return bad;
}
