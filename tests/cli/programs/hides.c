// SPDX-License-Identifier: MIT
// Holds 16 MiB, and hides from all but root, as programs with secrets do: it forbids core dumps.
//   hides         says "ready", and ends with its standard input
//   hides work    ends by itself after 0.3 s
//   hides child   a child does it, while the program itself is open
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void hold(void) {
  enum { kBytes = 16 << 20 };
  char* volatile block = malloc(kBytes);
  if (block == NULL) abort();
  memset(block, 1, kBytes);
}
static void work(void) {
  const struct timespec time = {.tv_sec = 0, .tv_nsec = 300000000};
  if (prctl(PR_SET_DUMPABLE, 0) != 0) _exit(3);
  hold();
  nanosleep(&time, NULL);
}

int main(int argc, char** argv) {
  const char* const mode = argc == 2 ? argv[1] : "";
  if (strcmp(mode, "work") == 0) {
    work();
    return 0;
  }
  if (strcmp(mode, "child") == 0) {
    const pid_t child = fork();
    if (child == 0) {
      work();
      _exit(0);
    }
    int status = 0;
    return waitpid(child, &status, 0) == child ? status : 4;
  }
  if (prctl(PR_SET_DUMPABLE, 0) != 0) return 3;
  hold();
  char byte;
  if (write(STDOUT_FILENO, "ready\n", 6) < 0) return 4;
  while (read(STDIN_FILENO, &byte, 1) > 0) continue;
  return 0;
}
