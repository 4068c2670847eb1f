// SPDX-License-Identifier: MIT
// A program with code that it makes at run time, as an interpreter does, and keeps blocks through it. It leaves the code's
// name for perf, as a file of this program's number in /tmp.
//   heap_jit framed          the code keeps a frame pointer
//   heap_jit plain           it does not, as CPython's trampolines
//   heap_jit wild NUMBER     its frame pointer is NUMBER (hexadecimal)
//   heap_jit unnamed         as framed, without a file
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void* volatile g_kept[80000];
typedef void (*Code)(int);
static Code g_code;

__attribute__((noinline)) void keep_site(int depth) {
  if (depth > 0) {
    g_code(depth - 1);
  } else {
    for (int i = 0; i < 80000; ++i) g_kept[i] = malloc(100);
  }
  __asm__ volatile("" ::: "memory");  // no tail call
}

static unsigned char* append(unsigned char* to, const void* bytes, size_t count) {
  return (unsigned char*)memcpy(to, bytes, count) + count;
}

static void make_code(const char* kind, uint64_t frame) {
  // The argument stays in rdi; the target goes through rcx.
  const uint64_t target = (uint64_t)(uintptr_t)&keep_site;
  unsigned char* const begin = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (begin == MAP_FAILED) exit(3);
  unsigned char* to = begin;
  if (strcmp(kind, "plain") == 0) {
    to = append(to, "\x48\x83\xec\x08", 4);  // sub $8,%rsp
  } else if (strcmp(kind, "wild") == 0) {
    to = append(to, "\x55\x48\xbd", 3);  // push %rbp; mov $frame,%rbp
    to = append(to, &frame, sizeof frame);
  } else {
    to = append(to, "\x55\x48\x89\xe5\x48\x83\xec\x20", 8);  // push %rbp; mov %rsp,%rbp; sub $32,%rsp
  }
  to = append(to, "\x48\xb9", 2);  // mov $target,%rcx
  to = append(to, &target, sizeof target);
  to = append(to, "\xff\xd1", 2);  // call *%rcx
  if (strcmp(kind, "plain") == 0)
    to = append(to, "\x48\x83\xc4\x08\xc3", 5);  // add $8,%rsp; ret
  else if (strcmp(kind, "wild") == 0)
    to = append(to, "\x90\x5d\xc3", 3);  // nop; pop %rbp; ret
  else
    to = append(to, "\xc9\xc3", 2);  // leave; ret
  if (mprotect(begin, 4096, PROT_READ | PROT_EXEC) != 0) exit(4);
  if (strcmp(kind, "unnamed") != 0) {
    char name[64];
    snprintf(name, sizeof name, "/tmp/perf-%d.map", (int)getpid());
    FILE* const map = fopen(name, "we");
    if (map == NULL) exit(5);
    fprintf(map, "damaged line\n%lx %lx made_at_run_time\n%lx 1000 other_name\n", (unsigned long)(uintptr_t)begin,
            (unsigned long)(to - begin), (unsigned long)(uintptr_t)&keep_site & ~4095UL);
    fclose(map);
  }
  memcpy(&g_code, &begin, sizeof g_code);
}

int main(int count, char** words) {
  if (count < 2) return 2;
  make_code(words[1], count > 2 ? strtoull(words[2], NULL, 16) : 0);
  keep_site(count < 4 ? 2 : 1);  // no constant, of which a compiler would make a copy of the function
  printf("%d\n", (int)getpid());
  return 0;
}
