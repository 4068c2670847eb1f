// SPDX-License-Identifier: MIT
#include "tests/cli/command.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace freehold::tests {
namespace {
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) throw std::runtime_error(std::string(name) + " is not set: start this test through ctest");
  return value;
}

[[noreturn]] void execute(std::vector<std::string>& words, const Environment& extra) {
  for (const auto& [name, value] : extra) ::setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  ::_exit(99);
}

}  // namespace

bool Ended::exited_with(int code) const { return WIFEXITED(status) && WEXITSTATUS(status) == code; }
bool Ended::killed_by(int signal) const { return WIFSIGNALED(status) && WTERMSIG(status) == signal; }

Process::Process(std::vector<std::string> words, const Environment& extra, const std::function<void()>& prepare) {
  int out[2];
  int err[2];
  if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("no process");
  if (pid_ == 0) {
    ::setpgid(0, 0);
    ::dup2(out[1], STDOUT_FILENO);
    ::dup2(err[1], STDERR_FILENO);
    if (prepare) prepare();
    execute(words, extra);
  }
  ::setpgid(pid_, pid_);
  ::close(out[1]);
  ::close(err[1]);
  out_ = out[0];
  err_ = err[0];
}

Process::~Process() {
  if (pid_ > 0) {
    ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  if (out_ >= 0) ::close(out_);
  if (err_ >= 0) ::close(err_);
}

// False when both outputs are at their end, or time is up.
bool Process::read_some(Clock::time_point deadline) {
  pollfd files[] = {{out_, POLLIN, 0}, {err_, POLLIN, 0}};
  if (out_ < 0 && err_ < 0) return false;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  if (left <= 0 || ::poll(files, 2, static_cast<int>(left)) <= 0) return false;
  const auto read_one = [](const pollfd& file, int& fd, std::string& text) {
    if (file.revents == 0) return;
    char buffer[4096];
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got > 0) {
      text.append(buffer, static_cast<std::size_t>(got));
    } else {
      ::close(fd);
      fd = -1;
    }
  };
  read_one(files[0], out_, ended_.out);
  read_one(files[1], err_, ended_.err);
  return true;
}

bool Process::wait_for_output(const std::string& text) {
  const auto deadline = Clock::now() + std::chrono::seconds(30);
  while (ended_.out.find(text) == std::string::npos) {
    if (!read_some(deadline)) return false;
  }
  return true;
}

Ended Process::wait(std::chrono::seconds limit) {
  const auto deadline = Clock::now() + limit;
  while (read_some(deadline)) {
  }
  if (Clock::now() >= deadline) ::kill(-pid_, SIGKILL);
  while (::waitpid(pid_, &ended_.status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return std::move(ended_);
}

Ended freehold(std::vector<std::string> arguments, const Environment& extra) {
  arguments.insert(arguments.begin(), command_path());
  return Process(std::move(arguments), extra).wait();
}

std::string command_path() { return environment("FREEHOLD_COMMAND"); }
std::string built(const std::string& name) { return (fs::path(environment("FREEHOLD_TEST_PROGRAMS")) / name).string(); }

std::string example() { return fs::path(command_path()).parent_path() / "freehold-doctor-example"; }

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  bool is_quoted = false;
  for (std::string word; in >> word;) {
    if (is_quoted)
      words.back() += ' ' + word;
    else
      words.push_back(word);
    is_quoted = std::ranges::count(words.back(), '\'') % 2 == 1;
  }
  for (std::string& word : words) std::erase(word, '\'');
  return words;
}

bool is_gone(pid_t pid) {
  for (int i = 0; i < 500; ++i) {
    const std::string stat = content_of("/proc/" + std::to_string(pid) + "/stat");
    if (stat.empty() || contains(stat, ") Z ")) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

long lines_of(const std::string& text) { return std::ranges::count(text, '\n'); }

}  // namespace freehold::tests
