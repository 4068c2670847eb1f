// SPDX-License-Identifier: MIT
/* A server that ends only when it is told to, and its load.
     serving SOCKET          answers every connection with a block from malloc
     serving SOCKET N        connects N times, says how many a second */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int serve(const struct sockaddr_un* address) {
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  unlink(address->sun_path);
  usleep(50 * 1000); /* a load that does not wait until it listens would fail */
  if (bind(listener, (const struct sockaddr*)address, sizeof *address) != 0 || listen(listener, 100) != 0) return 1;
  for (;;) {
    const int connection = accept(listener, NULL, NULL);
    char* const answer = calloc(1, 64);
    if (send(connection, answer, 64, MSG_NOSIGNAL) != 64) perror("a client left");
    free(answer);
    close(connection);
  }
}

static int load(const struct sockaddr_un* address, int count) {
  const double begin = now();
  for (int i = 0; i < count; ++i) {
    char answer[64];
    const int connection = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(connection, (const struct sockaddr*)address, sizeof *address) != 0) return 1;
    if (read(connection, answer, sizeof answer) != sizeof answer) return 1;
    close(connection);
  }
  printf("rate: %.1f/s\n", count / (now() - begin));
  return 0;
}

int main(int count, char** words) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (count < 2) return 2;
  strncpy(address.sun_path, words[1], sizeof address.sun_path - 1);
  return count > 2 ? load(&address, atoi(words[2])) : serve(&address);
}
