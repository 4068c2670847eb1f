// SPDX-License-Identifier: MIT
/* A program in C, linked with libc alone.
 *   plain_c atfork          registers fork handlers that allocate, before its first malloc; forks
 *   plain_c atfork_lock     the same with handlers that take a lock under which other threads allocate
 *   plain_c confined        confines itself by a filter of system calls before its first malloc
 *   plain_c deepbind NAME   loads a plug-in by RTLD_DEEPBIND; blocks cross between the two
 *   plain_c keys            takes all keys of threads before its first malloc; threads still have caches, and give them back
 *   plain_c last_round      threads whose first malloc comes in the last round of their keys' destructors
 *   plain_c plugin LIBRARY  loads a plug-in written in C++ and uses it
 *   plain_c sizes           allocates, checks and frees blocks of many sizes */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
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

/* Before anything of libc's allocates. */
static pthread_key_t g_keys[PTHREAD_KEYS_MAX];
__attribute__((constructor(102))) static void take_keys(int argc, char** argv) {
  if (argc != 2 || strcmp(argv[1], "keys") != 0) return;
  for (int i = 0; i < PTHREAD_KEYS_MAX; ++i)
    if (pthread_key_create(&g_keys[i], NULL) != 0) return;
}

static long resident_kib(void) {
  long pages = 0;
  char text[64] = "";
  const int file = open("/proc/self/statm", O_RDONLY);
  if (file < 0 || read(file, text, sizeof text - 1) <= 0) abort();
  close(file);
  if (sscanf(text, "%*s %ld", &pages) != 1) abort();
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Measures what body's threads leave behind, beyond the first of them. */
static int threads_leave_little(void* (*body)(void*)) {
  long before = 0;
  for (int i = 0; i < 3000; ++i) {
    pthread_t thread;
    if (i == 300) before = resident_kib();
    if (pthread_create(&thread, NULL, body, NULL) != 0) return 1;
    pthread_join(thread, NULL);
  }
  const long grown = resident_kib() - before;
  printf("growth_kib %ld\n", grown);
  return grown > 1024;
}

/* With a cache the block that was freed last is the next; without, it is the lowest. */
static int has_cache(void) {
  char* volatile low = malloc(100);
  char* volatile high = malloc(100);
  if (low > high) {
    char* const other = low;
    low = high;
    high = other;
  }
  free(low);
  free(high);
  char* volatile next = malloc(100);
  const int result = next == high;
  free(next);
  return result;
}

static void* needs_cache(void* nothing) {
  if (!has_cache()) {
    fputs("no cache\n", stderr);
    _exit(1);
  }
  return nothing;
}
static int all_keys_taken(void) {
  if (pthread_key_create(&g_keys[0], NULL) == 0) return 1; /* or this test shows nothing */
  needs_cache(NULL);
  return threads_leave_little(needs_cache);
}

static pthread_key_t g_round_key;
static void next_round(void* round) {
  if ((size_t)round < PTHREAD_DESTRUCTOR_ITERATIONS) {
    pthread_setspecific(g_round_key, (char*)round + 1);
    return;
  }
  for (size_t n = 16; n < 2000; n *= 2) free(malloc(n));
}
static void* begins_rounds(void* nothing) {
  pthread_setspecific(g_round_key, (void*)1);
  return nothing;
}

static int threads_there(void) {
  int count = 0;
  DIR* const tasks = opendir("/proc/self/task");
  if (tasks == NULL) abort();
  for (const struct dirent* task; (task = readdir(tasks)) != NULL;) count += task->d_name[0] != '.';
  closedir(tasks);
  return count;
}
/* Threads that ended unheard get the program no thread of Freehold's. */
static int alone_again(void) {
  char* volatile kept = malloc(16 << 20);
  for (int i = 0; i < 10000 && threads_there() != 1; ++i) usleep(1000); /* those that were joined still end */
  for (int i = 0; i < 200; ++i) free(malloc(16 << 20));
  free(kept);
  return threads_there() == 1 ? 0 : 3;
}
static int last_round(void) {
  /* A key of the first block: storing its value takes no memory. */
  if (pthread_key_create(&g_round_key, next_round) != 0) return 1;
  return threads_leave_little(begins_rounds) != 0 ? 1 : alone_again();
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

/* By its name alone: this program's RUNPATH says where it is. */
static int use_deeply_bound_plugin(const char* name) {
  int (*exchange)(void**, size_t);
  void* plugin = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  if (plugin == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  *(void**)&exchange = dlsym(plugin, "plugin_exchange");
  for (size_t n = 16; n < (size_t)64 << 20; n *= 5) {
    char* block = malloc(n);
    block[n - 1] = 1;
    const int failed = exchange((void**)&block, n);
    if (failed != 0) return failed;
    if (malloc_usable_size(block) < n || block[n - 1] != 2) return 3;
    block = realloc(block, 2 * n);
    if (block == NULL || block[n - 1] != 2) return 4;
    free(block);
  }
  return dlclose(plugin);
}

/* Before its first malloc: nothing but the end is allowed then, beside what malloc needs. */
static int confined(void) {
  static const int calls[] = {SYS_mmap, SYS_munmap, SYS_mremap, SYS_madvise, SYS_futex, SYS_exit_group};
  struct sock_filter program[16] = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr)}};
  unsigned short length = 1;
  for (size_t i = 0; i < sizeof calls / sizeof *calls; ++i) {
    program[length++] = (struct sock_filter){BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (unsigned)calls[i]};
    program[length++] = (struct sock_filter){BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
  }
  program[length++] = (struct sock_filter){BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS};
  const struct sock_fprog filter = {length, program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) return 1;
  use_all_sizes();
  return 0;
}

// Before any malloc of the program's, so that this call starts the engine; then all kinds.
static int keeps_errno(void) {
  errno = EBADMSG;
  for (size_t n = 16; n < (size_t)64 << 20; n *= 3) {
    char* volatile block = malloc(n);
    if (block == NULL || errno != EBADMSG) return 1;
    block = realloc(block, n * 2);
    if (block == NULL || errno != EBADMSG) return 1;
    free(block);
    if (errno != EBADMSG) return 1;
  }
  return 0;
}

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "errno") == 0) return keeps_errno();
  if (argc == 2 && strcmp(argv[1], "atfork") == 0) return fork_once();
  if (argc == 2 && strcmp(argv[1], "atfork_lock") == 0) return fork_amid_lock();
  if (argc == 2 && strcmp(argv[1], "keys") == 0) return all_keys_taken();
  if (argc == 2 && strcmp(argv[1], "last_round") == 0) return last_round();
  if (argc == 3 && strcmp(argv[1], "plugin") == 0) return use_plugin(argv[2]);
  if (argc == 2 && strcmp(argv[1], "confined") == 0) return confined();
  if (argc == 3 && strcmp(argv[1], "deepbind") == 0) return use_deeply_bound_plugin(argv[2]);
  if (argc == 2 && strcmp(argv[1], "sizes") == 0) {
    use_all_sizes();
    return 0;
  }
  return 2;
}
