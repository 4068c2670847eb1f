// SPDX-License-Identifier: MIT
// Processes and moments of a heap profile.
//   heap_switch switch FILE   begins a profile by itself: what was allocated before it or after its end is not in it
//   heap_switch fork          the child allocates; both end
//   heap_switch writes        forks over and over while another thread writes profiles; the children allocate
//   heap_switch unload LIB    blocks of a library that is there no more
//   heap_switch loop SECONDS  allocates and frees one block over and over; prints the turns
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

__attribute__((weak)) int freehold_profile_start(size_t distance);
__attribute__((weak)) void freehold_profile_stop(void);
__attribute__((weak)) int freehold_profile_write(const char* path);

#define SITE(name)                            \
  __attribute__((noinline)) void name(void) { \
    for (int i = 0; i < 80000; ++i) {         \
      void* volatile block = malloc(100);     \
      (void)block;                            \
    }                                         \
  }
SITE(before_site)
SITE(during_site)
SITE(after_site)
SITE(child_site)

static int switch_it(const char* file) {
  if (freehold_profile_start == NULL) return 3;
  if (freehold_profile_write(file) != -1 || errno != EINVAL) return 4;
  before_site();
  if (freehold_profile_start(4096) != 0) return 5;
  during_site();
  freehold_profile_stop();
  after_site();
  if (freehold_profile_write("/no such folder/x") != -1 || errno != ENOENT) return 6;
  if (freehold_profile_write(NULL) != -1 || errno != EINVAL) return 7;
  return freehold_profile_write(file) == 0 ? 0 : 8;
}

static int forked(void) {
  during_site();
  const pid_t child = fork();
  if (child == 0) {
    child_site();
    exit(0);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child ? status : 1;
}

static volatile int is_over;
static void* write_on(void* nothing) {
  while (!is_over) (void)freehold_profile_write("/dev/null");
  return nothing;
}
static int forked_amid_writes(void) {
  if (freehold_profile_start == NULL || freehold_profile_start(4096) != 0) return 3;
  pthread_t thread;
  if (pthread_create(&thread, NULL, write_on, NULL) != 0) return 4;
  int status = 0;
  for (int i = 0; i < 100 && status == 0; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      for (int k = 0; k < 2000; ++k) {
        void* volatile block = malloc(100);
        (void)block;
      }
      _exit(0);
    }
    if (waitpid(child, &status, 0) != child) return 5;
  }
  is_over = 1;
  pthread_join(thread, NULL);
  return status == 0 ? 0 : 6;
}

static int unloaded(const char* path) {
  void* const library = dlopen(path, RTLD_NOW);
  if (library == NULL) return 3;
  void* (*const allocate)(size_t) = (void* (*)(size_t))dlsym(library, "plugin_site");
  for (int i = 0; i < 80000; ++i) (void)allocate(100);
  if (dlclose(library) != 0) return 4;
  during_site();
  return 0;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int loop(double seconds) {
  unsigned long turns = 0;
  for (const double end = now() + seconds; now() < end;)
    for (int i = 0; i < 1000; ++i, ++turns) {
      void* volatile block = malloc(20000);
      free(block);
    }
  printf("%lu\n", turns);
  return 0;
}

int main(int argc, char** argv) {
  if (argc == 3 && strcmp(argv[1], "switch") == 0) return switch_it(argv[2]);
  if (argc == 2 && strcmp(argv[1], "fork") == 0) return forked();
  if (argc == 2 && strcmp(argv[1], "writes") == 0) return forked_amid_writes();
  if (argc == 3 && strcmp(argv[1], "unload") == 0) return unloaded(argv[2]);
  if (argc == 3 && strcmp(argv[1], "loop") == 0) return loop(atof(argv[2]));
  return 2;
}
