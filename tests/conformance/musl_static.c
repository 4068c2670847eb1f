// SPDX-License-Identifier: MIT
/* A static program of musl. `musl_static PEER` starts itself and PEER, which has musl's own malloc, and looks at
 *   fork  a thread forks while others make the process's first calls of malloc; child and threads go on
 *   live  60 MiB of live data are replaced under a limit of the address space; ends with what is resident on standard output
 */
#include <pthread.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;
int freehold_is_active(void) __attribute__((weak)); /* null in PEER */

static void require(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "musl_static: %s\n", what);
  exit(1);
}

static uint64_t next_random(uint64_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  return *state ^= *state << 17;
}

/* Replaces `count` of `n` blocks of 16 B to 2 KiB, whose last byte says how long they are. */
static void replace(char** blocks, size_t n, size_t count, uint64_t seed) {
  static const size_t kDoublings = 7;
  while (count-- != 0) {
    char** const block = &blocks[next_random(&seed) % n];
    if (*block != NULL) {
      uint16_t bytes;
      memcpy(&bytes, *block, sizeof bytes);
      require((*block)[bytes - 1] == (char)bytes, "a block was overwritten");
      free(*block);
    }
    const size_t least = (size_t)16 << next_random(&seed) % kDoublings;
    const uint16_t bytes = (uint16_t)(least + next_random(&seed) % least);
    *block = malloc(bytes);
    require(*block != NULL, "no memory");
    memset(*block, (char)bytes, bytes);
    memcpy(*block, &bytes, sizeof bytes);
  }
}

static void* work(void* seed) {
  char* blocks[100] = {NULL};
  replace(blocks, 100, 10000, (uintptr_t)seed);
  for (size_t i = 0; i < 100; ++i) free(blocks[i]);
  return NULL;
}

static int fork_beside_threads(void) {
  enum { kThreads = 8 };
  pthread_t threads[kThreads];
  for (uintptr_t t = 0; t < kThreads; ++t)
    require(pthread_create(&threads[t], NULL, work, (void*)(t + 1)) == 0, "no thread");
  const pid_t child = fork();
  alarm(60); /* in both: a hang ends */
  if (child == 0) {
    (void)work((void*)99);
    _exit(0);
  }
  int status = 1;
  require(waitpid(child, &status, 0) == child && status == 0, "the child failed");
  for (unsigned t = 0; t < kThreads; ++t) require(pthread_join(threads[t], NULL) == 0, "no end");
  return 0;
}

static int replace_live_data(void) {
  const struct rlimit limit = {128u << 20, 128u << 20};
  require(setrlimit(RLIMIT_AS, &limit) == 0, "no limit");
  const size_t n = (60u << 20) / 380;
  char** const blocks = calloc(n, sizeof *blocks);
  require(blocks != NULL, "no memory");
  replace(blocks, n, 6 * n, 88172645463325252u);
  char line[256];
  FILE* const status = fopen("/proc/self/status", "r");
  require(status != NULL, "no /proc");
  while (fgets(line, sizeof line, status) != NULL)
    if (strncmp(line, "RssAnon:", 8) == 0) fputs(line + 8, stdout);
  return 0;
}

/* Its first number on standard output, 0 without one. */
static long run(const char* program, const char* what) {
  int ends[2];
  posix_spawn_file_actions_t actions;
  pid_t child;
  require(pipe(ends) == 0 && posix_spawn_file_actions_init(&actions) == 0 &&
              posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO) == 0,
          "no pipe");
  char* const argv[] = {(char*)program, (char*)what, NULL};
  require(posix_spawn(&child, program, &actions, NULL, argv, environ) == 0, "it does not start");
  close(ends[1]);
  char text[64] = "";
  require(read(ends[0], text, sizeof text - 1) >= 0, "no output");
  close(ends[0]);
  int status = 1;
  require(waitpid(child, &status, 0) == child, "no child");
  if (status != 0) fprintf(stderr, "%s %s: status %d\n", program, what, status);
  require(status == 0, "a program failed");
  return strtol(text, NULL, 10);
}

int main(int argc, char** argv) {
  require(argc == 2, "usage: musl_static PEER | fork | live");
  if (strcmp(argv[1], "fork") == 0) return fork_beside_threads();
  if (strcmp(argv[1], "live") == 0) return replace_live_data();
  require(freehold_is_active != NULL && freehold_is_active() == 1, "another malloc is active");
  for (unsigned i = 0; i < 20; ++i) run(argv[0], "fork");
  const long ours = run(argv[0], "live"), theirs = run(argv[1], "live");
  printf("resident: %ld KiB; with musl's malloc %ld KiB\n", ours, theirs);
  require(theirs > 60 << 10 && 2 * ours <= 3 * theirs, "more than 1.5 times as much is resident");
  return 0;
}
