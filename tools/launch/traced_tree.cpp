// SPDX-License-Identifier: MIT
#include "tools/launch/traced_tree.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <ctime>
#include <set>

#include "tools/support/failure.hpp"
#include "tools/support/file_descriptor.hpp"

namespace freehold::inline tools {
namespace {

constexpr std::uintptr_t kOptions = PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXIT;

volatile pid_t g_program = 0;
void forward(int signal) { ::kill(g_program, signal); }

// The terminal's signals reach the program anyway; the others are passed on.
class Signals {
 public:
  Signals() {
    struct sigaction ignored{}, forwarded{};
    ignored.sa_handler = SIG_IGN;
    forwarded.sa_handler = forward;
    forwarded.sa_flags = SA_RESTART;
    for (std::size_t i = 0; i < std::size(kAll); ++i) ::sigaction(kAll[i], i < 2 ? &ignored : &forwarded, &before_[i]);
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  ~Signals() { restore(); }
  void restore() const {
    for (std::size_t i = 0; i < std::size(kAll); ++i) ::sigaction(kAll[i], &before_[i], nullptr);
  }

 private:
  static constexpr int kAll[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
  struct sigaction before_[4];
};

// In the child: waits until it is traced.
[[noreturn]] void become_traced(const Launch& launch, int go, int failed) {
  char byte = 0;
  while (::read(go, &byte, 1) < 0 && errno == EINTR) continue;
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  const int error = execute(launch);
  [[maybe_unused]] const auto written = ::write(failed, &error, sizeof error);
  ::_exit(kExitCannotExecute);
}

// Its first thread has its number.
bool is_process(pid_t thread) { return ::access(fmt::format("/proc/{}/task/{}", thread, thread).c_str(), F_OK) == 0; }

class Tree {
 public:
  Tree(pid_t program, const std::function<void(pid_t)>& look) : program_(program), look_(look) { known_.insert(program); }

  // Until the program has ended. Returns its status.
  int watch() {
    for (;;) {
      int status = 0;
      const pid_t changed = ::waitpid(-1, &status, __WALL);
      if (changed < 0 && errno == EINTR) continue;
      if (changed < 0) throw Failure(kExitRefused, fmt::format("lost the program: {}", error_text(errno)));
      note(changed, status);
      if (WIFSTOPPED(status) || changed != program_) continue;
      let_others_begin();
      for (const pid_t process : known_)
        if (is_process(process)) look_(process);
      return status;
    }
  }

 private:
  void note(pid_t thread, int status) {
    if (WIFSTOPPED(status))
      go_on(thread, status);
    else
      known_.erase(thread);
  }
  // Those that outlive the program may have been forked just now, or still be without their libraries.
  void let_others_begin() {
    constexpr timespec kMoment{0, 1'000'000};
    for (int moments = 0; moments < 100;) {
      int status = 0;
      const pid_t changed = ::waitpid(-1, &status, __WALL | WNOHANG);
      if (changed < 0) return;  // there are none
      if (changed > 0)
        note(changed, status);
      else
        ::nanosleep(&kMoment, nullptr), ++moments;
    }
  }
  void go_on(pid_t thread, int status) {
    const int event = status >> 16, signal = WSTOPSIG(status);
    known_.insert(thread);
    if (event == PTRACE_EVENT_EXIT) {
      if (is_process(thread)) look_(thread);
      known_.erase(thread);
    }
    const bool is_stopped = event == PTRACE_EVENT_STOP && signal != SIGTRAP;  // by Ctrl-Z, or SIGSTOP
    if (is_stopped)
      ::ptrace(PTRACE_LISTEN, thread, nullptr, nullptr);
    else
      ::ptrace(PTRACE_CONT, thread, nullptr, event != 0 ? 0L : static_cast<long>(signal));
  }

  pid_t program_;
  const std::function<void(pid_t)>& look_;
  std::set<pid_t> known_;  // threads that live
};

}  // namespace

int run_traced(const Launch& launch, const std::function<void(pid_t)>& look) {
  int go[2], failed[2];
  if (::pipe2(go, O_CLOEXEC) != 0 || ::pipe2(failed, O_CLOEXEC) != 0)
    throw Failure(kExitRefused, fmt::format("no pipe: {}", error_text(errno)));
  const FileDescriptor go_to_read(go[0]), failed_to_read(failed[0]);
  FileDescriptor go_to_write(go[1]), failed_to_write(failed[1]);
  const Signals signals;
  const pid_t child = ::fork();
  if (child < 0) throw Failure(kExitRefused, fmt::format("cannot start a process: {}", error_text(errno)));
  if (child == 0) {
    go_to_write.close();
    signals.restore();
    become_traced(launch, go_to_read.get(), failed_to_write.get());
  }
  g_program = child;
  failed_to_write.close();
  if (::ptrace(PTRACE_SEIZE, child, nullptr, kOptions) != 0) {
    const int error = errno;
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    throw Failure(kExitRefused, fmt::format("cannot trace a program here: {}; start it by 'freehold run' and check its "
                                            "number: freehold check-preload PID",
                                            error_text(error)));
  }
  go_to_write.close();
  const int status = Tree(child, look).watch();
  if (int error = 0; ::read(failed_to_read.get(), &error, sizeof error) == sizeof error) cannot_start(launch, error);
  return status;
}

}  // namespace freehold::inline tools
