// SPDX-License-Identifier: MIT
/* Frees a block twice, between two lines that it writes to standard error. Before that, by its argument: it closes
 * descriptors, puts its socket in their place, kills its parent, or does it in four children at a time. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int free_twice(void) {
  void* volatile block = malloc(24);
  fputs("before\n", stderr);
  free(block);
  free(block);
  fputs("after\n", stderr);
  return 3;
}

/* Puts something under the number of a descriptor that was not this program's own. */
static int reuse(int fd) {
  char text[64];
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0 || dup2(ends[0], fd) != fd) return 1;
  if (fork() == 0) return free_twice();
  wait(NULL);
  if (recv(ends[1], text, sizeof text, MSG_DONTWAIT) > 0) puts("something came");
  fflush(stdout);
  abort();
}

int main(int count, char** words) {
  const char* const mode = count > 1 ? words[1] : "";
  const char* const fd = getenv("FREEHOLD_REPORT_FD");
  if (strcmp(mode, "closes") == 0 && fd != NULL) close(atoi(fd));
  if (strcmp(mode, "reuses") == 0 && fd != NULL) return reuse(atoi(fd));
  if (strcmp(mode, "orphan") == 0 && fd != NULL) {
    const pid_t parent = getppid();
    kill(parent, SIGKILL);
    while (getppid() == parent) usleep(1000);
  }
  if (strcmp(mode, "children") == 0) {
    for (int i = 0; i < 4; ++i)
      if (fork() == 0) return free_twice();
    while (wait(NULL) > 0) continue;
    return 3;
  }
  return free_twice();
}
