/* A program in C, linked with libc alone.
 *   plain_c atfork          registers fork handlers that allocate, before its first malloc; forks
 *   plain_c atfork_lock     the same with handlers that take a lock under which other threads allocate
 *   plain_c plugin LIBRARY  loads a plug-in written in C++ and uses it
 *   plain_c sizes           allocates, checks and frees blocks of many sizes */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void use_all_sizes(void) {
  for (size_t n = 16; n < 400000; n += n / 4 + 16) {
    char* volatile blocks[50];
    for (size_t i = 0; i < 50; ++i) {
      blocks[i] = malloc(n);
      if (blocks[i] == NULL) abort();
      memset(blocks[i], (int)i, n);
    }
    for (size_t i = 0; i < 50; ++i) {
      if (blocks[i][0] != (char)i || blocks[i][n - 1] != (char)i) abort();
      free(blocks[i]);
    }
  }
}

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int g_stop = 0;

static void before(void) {
  use_all_sizes();
  pthread_mutex_lock(&g_lock);
}
static void after(void) {
  pthread_mutex_unlock(&g_lock);
  use_all_sizes();
}

__attribute__((constructor(101))) static void register_handlers(void) { pthread_atfork(before, after, after); }

static void* allocate_under_lock(void* nothing) {
  while (!g_stop) {
    pthread_mutex_lock(&g_lock);
    for (size_t n = 100; n < 1000000; n *= 3) {
      char* volatile block = malloc(n);
      if (block == NULL) abort();
      block[n - 1] = 1;
      free(block);
    }
    pthread_mutex_unlock(&g_lock);
    usleep(50);
  }
  return nothing;
}

static int fork_once(void) {
  int status = 1;
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    use_all_sizes();
    exit(0);
  }
  waitpid(child, &status, 0);
  use_all_sizes();
  return status == 0 ? 0 : 1;
}

static int fork_amid_lock(void) {
  pthread_t threads[2];
  int failures = 0;
  for (int t = 0; t < 2; ++t)
    if (pthread_create(&threads[t], NULL, allocate_under_lock, NULL) != 0) return 1;
  for (int i = 0; i < 20; ++i) failures += fork_once();
  g_stop = 1;
  for (int t = 0; t < 2; ++t) pthread_join(threads[t], NULL);
  return failures;
}

static int use_plugin(const char* path) {
  int (*use)(void);
  void* plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (plugin == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  *(void**)&use = dlsym(plugin, "plugin_use");
  return use != NULL ? use() : 1;
}

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "atfork") == 0) return fork_once();
  if (argc == 2 && strcmp(argv[1], "atfork_lock") == 0) return fork_amid_lock();
  if (argc == 3 && strcmp(argv[1], "plugin") == 0) return use_plugin(argv[2]);
  if (argc == 2 && strcmp(argv[1], "sizes") == 0) {
    use_all_sizes();
    return 0;
  }
  return 2;
}
