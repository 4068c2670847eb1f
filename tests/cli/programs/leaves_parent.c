// SPDX-License-Identifier: MIT
/* A program whose memory is held by a child that has lost its parent, as after a double fork: 96 MiB for 0.6 s, while the
   first process waits for twice that. Usage: leaves_parent [session] [stays]. `session`: the child begins one.
   `stays`: the first process ends at once, and the child lives on. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void sleep_ms(long ms) {
  const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
  nanosleep(&time, NULL);
}

int main(int argc, char** argv) {
  enum { kBytes = 96 << 20 };
  int stays = 0, session = 0;
  for (int i = 1; i < argc; ++i) {
    stays |= strcmp(argv[i], "stays") == 0;
    session |= strcmp(argv[i], "session") == 0;
  }
  const pid_t middle = fork();
  if (middle == 0) {
    if (fork() != 0) _exit(0);
    if (session) setsid();
    volatile char* const block = malloc(kBytes);
    if (block == NULL) abort();
    for (int i = 0; i < kBytes; i += 1024) block[i] = 1;
    sleep_ms(stays ? 60000 : 600);
    _exit(0);
  }
  waitpid(middle, NULL, 0);
  sleep_ms(stays ? 300 : 1200);
  return 0;
}
