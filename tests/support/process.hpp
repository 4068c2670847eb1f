// SPDX-License-Identifier: MIT
// Runs a program in a child process with a deadline: a hang is a failure with a name, not a test that never ends. Output and
// errors are captured; limits and environment are the caller's. Linux only.
#pragma once
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/emulated.hpp"

namespace freehold::test {

struct Command {
  std::vector<std::string> argv;
  std::vector<std::pair<std::string, std::string>> environment{};  // added to this process's own; empty value: removed
  std::vector<std::pair<int, rlim_t>> limits{};                    // RLIMIT_AS, …
  double timeout_seconds = emulated() ? 180 : 60;
};

struct Outcome {
  bool timed_out = false;
  int exit_code = -1;  // -1: ended by a signal
  int signal = 0;
  std::string out, err;

  [[nodiscard]] bool ok() const { return !timed_out && exit_code == 0; }
  // For a failure's message.
  [[nodiscard]] std::string describe() const {
    std::ostringstream text;
    if (timed_out) text << "hung and was killed; ";
    if (signal != 0 && !timed_out) text << "signal " << signal << "; ";
    if (exit_code >= 0) text << "exit code " << exit_code << "; ";
    text << "stdout:\n" << out << "stderr:\n" << err;
    return text.str();
  }
  // The lines "name number" of the output.
  [[nodiscard]] std::map<std::string, double> figures() const {
    std::map<std::string, double> found;
    std::istringstream lines(out);
    std::string line;
    while (std::getline(lines, line)) {
      std::istringstream words(line);
      std::string name;
      double value = 0;
      if (words >> name >> value) found[name] = value;
    }
    return found;
  }
};

namespace detail {
[[noreturn]] inline void become(const Command& command, int out, int err) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  for (const auto& [name, value] : command.environment)
    if (value.empty())
      ::unsetenv(name.c_str());
    else
      ::setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> argv;
  for (const std::string& argument : command.argv) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  for (const auto& [resource, bytes] : command.limits) {
    const rlimit limit{bytes, bytes};
    ::setrlimit(static_cast<__rlimit_resource_t>(resource), &limit);
  }
  ::execvp(argv[0], argv.data());
  ::_exit(127);
}
}  // namespace detail

inline Outcome run(const Command& command) {
  int out[2], err[2];
  if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0) return {};
  const pid_t child = ::fork();
  if (child == 0) detail::become(command, out[1], err[1]);
  ::setpgid(child, child);
  ::close(out[1]);
  ::close(err[1]);
  Outcome result;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(command.timeout_seconds);
  pollfd pipes[2] = {{out[0], POLLIN, 0}, {err[0], POLLIN, 0}};
  std::string* const texts[2] = {&result.out, &result.err};
  int open = 2;
  while (open > 0) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    if (left <= 0) break;
    if (::poll(pipes, 2, static_cast<int>(left)) < 0 && errno != EINTR) break;
    for (int i = 0; i < 2; ++i) {
      if ((pipes[i].revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
      char buffer[4096];
      const ssize_t n = ::read(pipes[i].fd, buffer, sizeof buffer);
      if (n > 0) {
        texts[i]->append(buffer, static_cast<std::size_t>(n));
      } else if (n == 0) {
        pipes[i].fd = -1;
        pipes[i].revents = 0;
        --open;
      }
    }
  }
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline) {
      result.timed_out = true;
      ::kill(-child, SIGKILL);
      ::waitpid(child, &status, 0);
      break;
    }
    ::usleep(1000);
  }
  ::kill(-child, SIGKILL);  // whatever it left behind
  result.err = without_emulator(std::move(result.err));
  ::close(out[0]);
  ::close(err[0]);
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  return result;
}

}  // namespace freehold::test
