// SPDX-License-Identifier: MIT
#include "freehold/process/command_job.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "freehold/os/child_environment.hpp"

namespace freehold::process {
namespace {

std::uint64_t nanoseconds(clockid_t clock) noexcept {
  timespec t{};
  ::clock_gettime(clock, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec);
}

struct Pipe {
  int ends[2] = {-1, -1};
  Pipe() noexcept {
    if (::pipe2(ends, O_CLOEXEC) != 0) ends[0] = ends[1] = -1;
  }
  ~Pipe() {
    close_writer();
    if (ends[0] >= 0) ::close(ends[0]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_writer() noexcept {
    if (ends[1] >= 0) ::close(ends[1]);
    ends[1] = -1;
  }
};

// When the pool's process dies, however it dies, the kernel kills its workers; but not the commands that these have started.
// They are in the worker's process group, so the worker asks for a signal instead and ends the group, itself included.
void end_commands_with_the_pool() noexcept {
  static bool done = false;
  if (std::exchange(done, true) || ::getpgrp() != ::getpid()) return;
  struct sigaction action{};
  action.sa_handler = [](int) { ::kill(0, SIGKILL); };
  if (::sigaction(SIGHUP, &action, nullptr) == 0) ::prctl(PR_SET_PDEATHSIG, SIGHUP);
}

// Starts the command. Returns an errno.
int start(const std::string& number, std::string& command, const Pipe& out, const Pipe& err, pid_t& pid) {
  std::vector<std::string> variables = os::environment_with({{"FREEHOLD_SEQ", number}}, {"FREEHOLD_WORKER"});
  char shell[] = "/bin/sh", option[] = "-c";
  char* const arguments[] = {shell, option, command.data(), nullptr};
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&files, out.ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, err.ends[1], STDERR_FILENO);
  const int error = ::posix_spawn(&pid, shell, &files, nullptr, arguments, os::pointers_to(variables).data());
  ::posix_spawn_file_actions_destroy(&files);
  return error;
}

}  // namespace

int run_command_job(const void* input, std::size_t input_bytes, void* output, std::size_t capacity,
                    std::size_t* output_bytes) noexcept {
  const std::string_view text(static_cast<const char*>(input), input_bytes);
  const std::size_t zero = text.find('\0');
  if (zero == std::string_view::npos || capacity < sizeof(CommandResult)) return kJobTooLong;
  end_commands_with_the_pool();
  const std::string number(text.substr(0, zero));
  std::string command(text.substr(zero + 1));

  CommandResult result{.begin = nanoseconds(CLOCK_REALTIME)};
  const std::uint64_t begin = nanoseconds(CLOCK_MONOTONIC);
  char* const place = static_cast<char*>(output) + sizeof result;
  const std::size_t room = capacity - sizeof result;
  std::string errors;
  bool too_long = false;
  {
    Pipe out, err;
    pid_t pid = 0;
    result.started_errno = out.ends[0] < 0 || err.ends[0] < 0 ? EMFILE : start(number, command, out, err, pid);
    out.close_writer();
    err.close_writer();
    pollfd files[2]{{out.ends[0], POLLIN, 0}, {err.ends[0], POLLIN, 0}};
    char some[16384];
    while (result.started_errno == 0 && (files[0].fd >= 0 || files[1].fd >= 0)) {
      if (::poll(files, 2, -1) < 0) continue;
      for (int i = 0; i < 2; ++i) {
        if (files[i].revents == 0) continue;
        // Into the output itself, while there is room; the rest is read and dropped, so that the command ends.
        const bool in_place = i == 0 && result.out_bytes < room;
        char* const to = in_place ? place + result.out_bytes : some;
        const ssize_t n = ::read(files[i].fd, to, in_place ? room - result.out_bytes : sizeof some);
        if (n < 0 && errno == EINTR) continue;  // at the end of the file errno is an earlier call's
        if (n <= 0)
          files[i].fd = -1;
        else if (in_place)
          result.out_bytes += static_cast<std::size_t>(n);
        else if (i == 1 && errors.size() + static_cast<std::size_t>(n) <= room)
          errors.append(some, static_cast<std::size_t>(n));
        else
          too_long = true;
      }
    }
    while (result.started_errno == 0 && ::waitpid(pid, &result.status, 0) < 0 && errno == EINTR) {
    }
  }
  result.runtime = nanoseconds(CLOCK_MONOTONIC) - begin;
  result.err_bytes = errors.size();
  if (too_long || result.out_bytes + result.err_bytes > room) return kJobTooLong;
  std::memcpy(place + result.out_bytes, errors.data(), errors.size());
  std::memcpy(output, &result, sizeof result);
  *output_bytes = sizeof result + result.out_bytes + result.err_bytes;
  return 0;
}

}  // namespace freehold::process
