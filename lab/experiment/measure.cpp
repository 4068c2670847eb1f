// SPDX-License-Identifier: MIT
#include "lab/experiment/measure.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <utility>
#include <vector>

#include "freehold/os/child_environment.hpp"
#include "tools/support/failure.hpp"
#include "tools/support/file_descriptor.hpp"

namespace freehold::lab {
namespace {

constexpr int kReportFd = 3;  // in the worker

struct Pipe {
  FileDescriptor read_end;
  FileDescriptor write_end;
};

Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw Failure(kExitRefused, fmt::format("no pipe: {}", error_text(errno)));
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

// This process's environment with `library`, and nothing else, preloaded.
std::vector<std::string> environment_with(const std::string& library) {
  if (library.empty()) return os::environment_with({}, {"LD_PRELOAD"});
  return os::environment_with({{"LD_PRELOAD", library}});
}

// A worker process, in its own process group: Ctrl-C does not reach it, and its own children die with it.
class Worker {
 public:
  Worker(std::vector<std::string> words, const std::string& library, const sigset_t& mask)
      : report_(make_pipe()), complaint_(make_pipe()), pid_(start(words, library, mask)) {
    report_.write_end.close();
    complaint_.write_end.close();
  }
  ~Worker() {
    if (pid_ > 0) (void)kill_and_wait();
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  [[nodiscard]] int report_fd() const { return report_.read_end.get(); }
  [[nodiscard]] int complaint_fd() const { return complaint_.read_end.get(); }

  int wait() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    ::kill(-pid_, SIGKILL);  // kills what it may have left behind
    pid_ = -1;
    return status;
  }
  int kill_and_wait() {
    ::kill(-pid_, SIGKILL);
    return wait();
  }

 private:
  pid_t start(std::vector<std::string>& words, const std::string& library, const sigset_t& mask) {
    words.insert(words.begin(), "freehold");
    std::vector<std::string> variables = environment_with(library);
    posix_spawn_file_actions_t files;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    ::posix_spawn_file_actions_adddup2(&files, complaint_.write_end.get(), STDERR_FILENO);
    ::posix_spawn_file_actions_adddup2(&files, report_.write_end.get(), kReportFd);
    posix_spawnattr_t attributes;
    ::posix_spawnattr_init(&attributes);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    ::posix_spawnattr_setpgroup(&attributes, 0);
    ::posix_spawnattr_setsigmask(&attributes, &mask);
    pid_t pid = -1;
    const int error = ::posix_spawn(&pid, "/proc/self/exe", &files, &attributes, os::pointers_to(words).data(),
                                    os::pointers_to(variables).data());
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&files);
    if (error != 0) throw Failure(kExitRefused, fmt::format("cannot start a worker: {}", error_text(error)));
    return pid;
  }

  Pipe report_;
  Pipe complaint_;
  pid_t pid_;
};

// Appends what can be read. False at the end of the file.
bool read_some(int fd, std::string& text) {
  char buffer[1024];
  const ssize_t got = ::read(fd, buffer, sizeof buffer);
  if (got > 0) text.append(buffer, static_cast<std::size_t>(got));
  return got > 0 || (got < 0 && errno == EINTR);
}

enum class End { kClosed, kInterrupted, kTimeout };

// Reads report and complaint until the worker has closed both.
End collect(const Worker& worker, Interrupts& interrupts, std::chrono::seconds limit, std::string& report,
            std::string& complaint) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  pollfd files[] = {{interrupts.fd(), POLLIN, 0}, {worker.report_fd(), POLLIN, 0}, {worker.complaint_fd(), POLLIN, 0}};
  while (files[1].fd >= 0 || files[2].fd >= 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return End::kTimeout;
    if (::poll(files, std::size(files), static_cast<int>(left.count())) <= 0) continue;
    if (files[0].revents != 0 && interrupts.arrived() != 0) return End::kInterrupted;
    if (files[1].revents != 0 && !read_some(files[1].fd, report)) files[1].fd = -1;
    if (files[2].revents != 0 && !read_some(files[2].fd, complaint)) files[2].fd = -1;
  }
  return End::kClosed;
}

std::string first_line(const std::string& text) { return printable(text.substr(0, text.find('\n'))); }

}  // namespace

int run_worker_main(const std::function<bool()>& work) try {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a measurement that no process waits for is useless
  ::_exit(work() ? 0 : 1);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}

WorkerEnd run_worker(std::vector<std::string> words, const std::string& library, std::chrono::seconds limit,
                     Interrupts& interrupts) {
  Worker worker(std::move(words), library, interrupts.original_mask());
  std::string report;
  std::string complaint;
  switch (collect(worker, interrupts, limit, report, complaint)) {
    case End::kInterrupted: return Interrupted{};
    case End::kTimeout: return NoReport{fmt::format("no end after {} s", limit.count())};
    case End::kClosed: break;
  }
  const int status = worker.wait();
  if (WIFSIGNALED(status)) return NoReport{fmt::format("killed by signal {}", WTERMSIG(status))};
  if (WEXITSTATUS(status) != 0) {
    return NoReport{complaint.empty() ? fmt::format("ended with exit code {}", WEXITSTATUS(status)) : first_line(complaint)};
  }
  return report;
}

bool write_report(const void* report, std::size_t bytes) {
  return ::write(kReportFd, report, bytes) == static_cast<ssize_t>(bytes);
}

}  // namespace freehold::lab
