// SPDX-License-Identifier: MIT
// A fully static program, in which the linker chose the malloc. It uses what a real one does: threads that end with live
// blocks, a fork, exceptions, locale and stdio buffers that libc allocates, mallopt and mallinfo.
#include <malloc.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>

#include "freehold/malloc.h"
#include "tests/linking/check.h"

namespace {

void* leave_blocks_behind(void* argument) {
  thread_local std::string local(1000, 'l');
  local += 'x';
  auto** blocks = static_cast<char**>(argument);
  for (int i = 0; i < 1000; ++i) {
    blocks[i] = static_cast<char*>(std::malloc(static_cast<std::size_t>(i) + 1));
    blocks[i][i] = static_cast<char>(i);
  }
  return nullptr;
}

void use_threads() {
  for (int round = 0; round < 50; ++round) {
    static char* blocks[4][1000];
    pthread_t threads[4];
    for (int t = 0; t < 4; ++t) CHECK(pthread_create(&threads[t], nullptr, leave_blocks_behind, blocks[t]) == 0);
    for (int t = 0; t < 4; ++t) CHECK(pthread_join(threads[t], nullptr) == 0);
    for (auto& of_thread : blocks)
      for (int i = 0; i < 1000; ++i) {
        CHECK(of_thread[i][i] == static_cast<char>(i));
        std::free(of_thread[i]);
      }
  }
}

void use_fork() {
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    use_threads();
    std::_Exit(EXIT_SUCCESS);
  }
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
}

}  // namespace

int main() {
  CHECK(freehold_is_active() == 1);
  char* const from_libc = strdup("hello");
  CHECK(malloc_usable_size(from_libc) >= 6);
  std::free(from_libc);
  std::map<int, std::string> map;
  for (int i = 0; i < 1000; ++i) map[i] = std::string(static_cast<std::size_t>(i), 'x');
  bool caught = false;
  try {
    (void)map.at(1000);
  } catch (const std::out_of_range&) {
    caught = true;
  }
  CHECK(caught);
  use_threads();
  use_fork();
  CHECK(mallopt(M_ARENA_MAX, 1) == 0 || mallopt(M_ARENA_MAX, 1) == 1);
  CHECK(mallinfo2().uordblks > 0);
}
