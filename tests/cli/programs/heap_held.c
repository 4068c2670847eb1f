// SPDX-License-Identifier: MIT
// Holds known amounts at known sites, each with blocks of another size, until its standard input ends. Says "ready" on
// standard output when they are there.
//   heap_held quiet         nothing else happens
//   heap_held busy          three threads allocate and free at two further sites, as fast as they can
//   heap_held alone         the main thread does the same, and there is no other one
//   heap_held confined      the same, once it has announced a filter of system calls
//   heap_held forks         forks over and over; the children load a library
//   heap_held growing       one thread allocates more and more, so that each moment is the peak
//   heap_held ends          the same as busy, and ends by itself after a while
//   heap_held fork          a child, which names itself: "ready PID"; it holds twice the blocks of one site
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SITE(name)                                     \
  __attribute__((noinline)) void* name(size_t bytes) { \
    void* volatile block = malloc(bytes);              \
    if (block == NULL) abort();                        \
    return block;                                      \
  }
SITE(held_48_site)
SITE(held_200_site)
SITE(held_3000_site)
SITE(held_50000_site)
SITE(moving_1000_site)
SITE(moving_70000_site)
SITE(growing_500_site)

enum { kBytes = 16 << 20 };  // bytes of each held site

static void hold(void* (*site)(size_t), size_t bytes) {
  for (size_t i = 0; i < kBytes / bytes; ++i) site(bytes);
}
static void hold_all(void) {
  hold(held_48_site, 48);
  hold(held_200_site, 200);
  hold(held_3000_site, 3000);
  hold(held_50000_site, 50000);
}

// Never more than this of each thread and site.
enum { kMoving = 64 };
static void* move(void* nothing) {
  void* small[kMoving] = {0};
  void* large[kMoving] = {0};
  for (size_t i = 0;; ++i) {
    const size_t at = i * 7 % kMoving;
    free(small[at]);
    free(large[at]);
    // In turns, so that blocks of one site take the places of the other's.
    small[at] = i % 2 == 0 ? moving_1000_site(1000) : moving_70000_site(70000);
    large[at] = i % 2 == 0 ? moving_70000_site(70000) : moving_1000_site(1000);
  }
  return nothing;
}
static void fork_on(void) {
  for (;;) {
    growing_500_site(500);
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      for (int i = 0; i < 100; ++i) growing_500_site(500);
      _exit(dlopen("libm.so.6", RTLD_NOW) == NULL);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) abort();
  }
}
static void* grow(void* nothing) {
  for (int i = 0; i < 2000000; ++i) growing_500_site(500);
  return nothing;
}

static void start(void* (*run)(void*), int threads) {
  for (int i = 0; i < threads; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, NULL) != 0) abort();
  }
}
static void say(const char* line) {
  if (write(STDOUT_FILENO, line, strlen(line)) < 0) _exit(3);
}
static void wait_for_the_end(void) {
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0) continue;
}

int main(int argc, char** argv) {
  const char* const mode = argc == 2 ? argv[1] : "";
  hold_all();
  if (strcmp(mode, "fork") == 0) {
    const pid_t child = fork();
    if (child == 0) {
      hold(held_200_site, 200);
      char line[64];
      snprintf(line, sizeof line, "ready %d\n", (int)getpid());
      say(line);
      wait_for_the_end();
      _exit(0);
    }
    int status = 0;
    return waitpid(child, &status, 0) == child ? status : 4;
  }
  if (strcmp(mode, "busy") == 0 || strcmp(mode, "ends") == 0) start(move, 3);
  if (strcmp(mode, "growing") == 0) start(grow, 1);
  if (strcmp(mode, "confined") == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return 5;
  say("ready\n");
  if (strcmp(mode, "alone") == 0 || strcmp(mode, "confined") == 0) move(NULL);
  if (strcmp(mode, "forks") == 0) fork_on();
  if (strcmp(mode, "ends") == 0) {
    const struct timespec pause = {.tv_sec = 0, .tv_nsec = 300000000};
    nanosleep(&pause, NULL);
    _exit(0);
  }
  wait_for_the_end();
  _exit(0);
}
