// SPDX-License-Identifier: MIT
/* Runs one part of rpmalloc's test, whose own main() stops at the first part that wants rpmalloc's size classes. */
#define NO_MAIN 1
#include <main.c>

static const struct {
  const char* name;
  int (*run)(void);
} parts[] = {
    {"realloc", test_realloc},   {"superalign", test_superalign}, {"crossthread", test_crossthread},
    {"threaded", test_threaded}, {"threadspam", test_threadspam},
};

int main(int argc, char** argv) {
  test_initialize();
  for (size_t i = 0; argc == 2 && i < sizeof parts / sizeof parts[0]; ++i)
    if (strcmp(parts[i].name, argv[1]) == 0) return parts[i].run() == 0 && test_failed == 0 ? 0 : 1;
  fprintf(stderr, "no such part\n");
  return 2;
}
