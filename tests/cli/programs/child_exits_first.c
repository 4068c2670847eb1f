// SPDX-License-Identifier: MIT
/* A child that ends by exit(), then a parent that is killed: no stats may be taken for the parent's. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
  char* volatile block = malloc(1000);
  free(block);
  if (fork() == 0) exit(0);
  wait(NULL);
  return raise(SIGKILL);
}
