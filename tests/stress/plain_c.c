/* A program in C, linked with libc alone.
 *   plain_c atfork          registers fork handlers that allocate, before its first malloc; forks
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

__attribute__((constructor(101))) static void register_handlers(void) {
  pthread_atfork(use_all_sizes, use_all_sizes, use_all_sizes);
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
  if (argc == 3 && strcmp(argv[1], "plugin") == 0) return use_plugin(argv[2]);
  if (argc == 2 && strcmp(argv[1], "sizes") == 0) {
    use_all_sizes();
    return 0;
  }
  return 2;
}
