// SPDX-License-Identifier: MIT
// For tests of commands that look at a process while it runs.
#pragma once
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "tests/cli/command.hpp"

namespace freehold::tests {

// A standard input that never ends.
inline void keep_input_open() {
  int both[2];
  if (::pipe(both) == 0) ::dup2(both[0], STDIN_FILENO);
}

// A program of tests/cli/programs under freehold run --live, once it is ready.
class LiveProgram {
 public:
  LiveProgram(const std::string& program, const std::string& mode, const Environment& extra,
              const std::function<void()>& prepare = keep_input_open)
      : process_({command_path(), "run", "--live", "--", built(program), mode}, extra, prepare) {
    EXPECT_TRUE(process_.wait_for_output("ready"));
  }
  [[nodiscard]] pid_t pid() const { return process_.pid(); }
  Process& process() { return process_; }
  [[nodiscard]] bool is_alive() const {
    int status = 0;
    return ::waitpid(pid(), &status, WNOHANG) == 0;
  }

 private:
  Process process_;
};

}  // namespace freehold::tests
