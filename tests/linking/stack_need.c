// SPDX-License-Identifier: MIT
/* How much of the stack do malloc and its family need? Coroutines have 8 KiB in all.
 *   stack_need BYTES   fails if a call needs more: from the process's first on, beside threads, and near a control group's
 * limit */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum { kRoom = 96 << 10, kBlocks = 2000, kPaint = 0xa5 };
static unsigned char* g_stack;
static ucontext_t g_main, g_fiber;
static void (*g_call)(void);
static void enter(void) { g_call(); }

/* The deepest byte that changed. */
static size_t depth_of(void (*call)(void)) {
  memset(g_stack, kPaint, kRoom);
  getcontext(&g_fiber);
  g_fiber.uc_stack.ss_sp = g_stack;
  g_fiber.uc_stack.ss_size = kRoom;
  g_fiber.uc_link = &g_main;
  g_call = call;
  makecontext(&g_fiber, enter, 0);
  swapcontext(&g_main, &g_fiber);
  size_t untouched = 0;
  while (untouched < kRoom && g_stack[untouched] == kPaint) ++untouched;
  return kRoom - untouched;
}

static uint64_t g_random = 5;
static uint64_t next_random(void) { return g_random = g_random * 6364136223846793005U + 1442695040888963407U; }
static size_t next_size(void) {
  const unsigned kind = (next_random() >> 20) & 1023;
  const size_t n = 1 + (g_random >> 40);
  return kind < 700 ? n % 3000 : kind < 950 ? n % 60000 : kind < 1015 ? n % 2000000 : n % 12000000;
}

static void* g_blocks[kBlocks];
static size_t g_place, g_bytes;
static void* volatile* block(void) { return (void* volatile*)&g_blocks[g_place]; }
static void nothing(void) {}
static void call_malloc(void) { *block() = malloc(g_bytes); }
static void call_calloc(void) { *block() = calloc(1, g_bytes); }
static void call_free(void) {
  free(*block());
  *block() = NULL;
}
static void call_realloc(void) { *block() = realloc(*block(), g_bytes + 1); }
static void call_memalign(void) { *block() = memalign(1U << (4 + g_bytes % 14), g_bytes); }
static void call_usable(void) { g_bytes = malloc_usable_size(*block()); }
static void call_trim(void) { malloc_trim(0); }
enum { kMalloc, kCalloc, kFree, kRealloc, kMemalign, kUsable, kTrim, kCalls };
static const struct {
  const char* name;
  void (*call)(void);
} kFamily[kCalls] = {{"malloc", call_malloc},   {"calloc", call_calloc},     {"free", call_free},
                     {"realloc", call_realloc}, {"memalign", call_memalign}, {"malloc_usable_size", call_usable},
                     {"malloc_trim", call_trim}};
static size_t g_most[kCalls], g_base;
static void measure(int of) {
  const size_t depth = depth_of(kFamily[of].call) - g_base;
  if (depth > g_most[of]) g_most[of] = depth;
}

static void* measure_all(void* none) {
  for (int round = 0; round < 5000; ++round) {
    g_bytes = next_size();
    g_place = (next_random() >> 33) % kBlocks;
    if (g_blocks[g_place] != NULL)
      measure((next_random() >> 50) % 3 == 0 ? kRealloc : kFree);
    else
      measure((next_random() >> 50) % 4 == 0 ? kCalloc : (g_random >> 50) % 4 == 1 ? kMemalign : kMalloc);
    if (g_blocks[g_place] != NULL) measure(kUsable);
    if (round % 1500 == 1499) measure(kTrim);
  }
  for (g_place = 0; g_place < kBlocks; ++g_place) measure(kFree);
  return none;
}
static void* beside(void* none) {
  static void* volatile blocks[20000];
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 20000; ++i) blocks[i] = malloc(600);
    for (int i = 0; i < 20000; ++i) free(blocks[i]);
    usleep(50000);
  }
  return none;
}

static int measure_process(size_t allowed) {
  g_stack = mmap(NULL, kRoom, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  g_base = depth_of(nothing);
  measure_all(NULL); /* the first call of the process, if libc made none */
  pthread_t other, second;
  pthread_create(&other, NULL, beside, NULL);
  pthread_create(&second, NULL, measure_all, NULL);
  pthread_join(second, NULL);
  measure_all(NULL);
  pthread_join(other, NULL);
  int bad = 0;
  for (int i = 0; i < kCalls; ++i) {
    printf("%s %zu\n", kFamily[i].name, g_most[i]);
    bad |= g_most[i] > allowed;
  }
  return bad;
}

static void write_file(const char* folder, const char* name, const char* text) {
  char path[300];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE* const file = fopen(path, "w");
  if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0) _exit(3);
}

/* Runs this program again, with malloc's look at the folder if it is given. */
static int run(char** argv, const char* folder) {
  const pid_t child = fork();
  if (child == 0) {
    if (folder != NULL) setenv("FREEHOLD_CGROUP", folder, 1);
    char* arguments[] = {argv[0], argv[1], (char*)"measure", NULL};
    execv("/proc/self/exe", arguments);
    _exit(9);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

int main(int argc, char** argv) {
  if (argc == 3) return measure_process(strtoul(argv[1], NULL, 10));
  if (argc != 2) return 2;
  char folder[] = "/tmp/stack_need_XXXXXX";
  if (mkdtemp(folder) == NULL) return 3;
  write_file(folder, "memory.max", "300000000\n");
  write_file(folder, "memory.current", "250000000\n");
  write_file(folder, "memory.stat",
             "anon 200000000\nfile 1000000\ninactive_anon 0\ninactive_file 500000\nactive_file 500000\n");
  write_file(folder, "memory.pressure", "some avg10=0.00 avg60=0.00\nfull avg10=2.00 avg60=0.00\n");
  int bad = 0;
  if (run(argv, NULL) != 0) bad = fprintf(stderr, "plain: too deep, or ended badly\n");
  if (run(argv, folder) != 0) bad = fprintf(stderr, "near the limit of a control group: too deep, or ended badly\n");
  static const char* const kFiles[] = {"memory.max", "memory.current", "memory.stat", "memory.pressure"};
  for (int i = 0; i < 4; ++i) {
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, kFiles[i]);
    unlink(path);
  }
  rmdir(folder);
  return bad != 0;
}
