// SPDX-License-Identifier: MIT
// A child of fork that does one thing, for what cannot be undone or must be seen from outside.
#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace freehold::test {

// Returns what a child returned that ran `act`, or minus the number of the signal that ended it. It has a minute.
inline int run_in_child(const std::function<int()>& act) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::alarm(60);
    ::_exit(act());
  }
  int status = 0;
  if (pid < 0 || ::waitpid(pid, &status, 0) != pid) return -1000;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace freehold::test
