// SPDX-License-Identifier: MIT
// The freehold command on a terminal: progress, and Ctrl-C.
#pragma once
#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/cli/command.hpp"

namespace freehold::tests {

// The command on its own terminal, for progress and Ctrl-C.
class OnATerminal {
 public:
  explicit OnATerminal(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), command_path());
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    pid_ = ::forkpty(&terminal_, nullptr, nullptr, nullptr);
    if (pid_ == 0) {
      ::signal(SIGINT, SIG_DFL);  // which tests that run in the background of a shell have ignored
      ::execv(argv[0], argv.data());
      ::_exit(99);
    }
    // Ctrl-C otherwise discards what the command has written and this test has not yet read.
    termios settings{};
    EXPECT_EQ(::tcgetattr(terminal_, &settings), 0);
    settings.c_lflag |= NOFLSH;
    EXPECT_EQ(::tcsetattr(terminal_, TCSANOW, &settings), 0);
  }
  ~OnATerminal() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::close(terminal_);
  }
  OnATerminal(const OnATerminal&) = delete;
  OnATerminal& operator=(const OnATerminal&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  bool wait_for(const std::string& text) {
    char buffer[512];
    while (seen_.find(text) == std::string::npos) {
      const ssize_t got = ::read(terminal_, buffer, sizeof buffer);
      if (got <= 0) return false;
      seen_.append(buffer, static_cast<std::size_t>(got));
    }
    return true;
  }
  void type(char key) { EXPECT_EQ(::write(terminal_, &key, 1), 1); }
  int end() {
    while (wait_for("text that never comes")) {
    }
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }
  // The number of a signal that killed it is negative.
  int exit_code() {
    const int status = end();
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  [[nodiscard]] const std::string& seen() const { return seen_; }

 private:
  pid_t pid_ = -1;
  int terminal_ = -1;
  std::string seen_;
};

inline constexpr char kCtrlC = 3;

}  // namespace freehold::tests
