// SPDX-License-Identifier: MIT
/* A program that closes every file it did not open and then happens to get the number of the stats' file for its own data,
   as daemons do. Usage: reuses_descriptors FILE. The file must hold what this program wrote and nothing else. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
  const char* number = getenv("FREEHOLD_STATS_FD");
  if (argc != 2 || number == NULL) return 3;
  const int target = atoi(number);
  char* volatile block = malloc(1000);
  memset(block, 1, 1000);
  free(block);
  for (int fd = 3; fd < 4096; ++fd) close(fd);
  const int file = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (dup2(file, target) != target) return 4;
  return write(target, "precious", 8) == 8 ? 0 : 5;
}
