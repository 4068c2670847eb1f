// SPDX-License-Identifier: MIT
#include "tools/launch/launch.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "tools/launch/stack_answers.hpp"
#include "tools/support/failure.hpp"
#include "tools/support/file_descriptor.hpp"
#include "tools/support/library.hpp"

namespace freehold::inline tools {
namespace {

// Signals that say something about this process itself; every other one is meant for the program.
constexpr int kOwnSignals[] = {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS,  SIGILL,  SIGFPE,
                               SIGTRAP, SIGABRT, SIGSYS,  SIGPIPE, SIGTTIN, SIGTTOU};
// Programs number their files from 3 and some close or reuse low numbers that they did not open: stay out of their way.
constexpr rlim_t kStatsFd = 960;

sigset_t forwarded_signals() {
  sigset_t set;
  ::sigfillset(&set);
  for (const int signal : kOwnSignals) ::sigdelset(&set, signal);
  return set;
}

// Memory that the program writes its stats into. Sealed to its size: a stray write cannot make it grow.
FileDescriptor stats_file() {
  FileDescriptor file(::memfd_create("freehold-stats", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file || ::ftruncate(file.get(), sizeof(alloc::Stats)) != 0 ||
      ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK) != 0) {
    throw Failure(kExitRefused, fmt::format("no memory for the stats: {}", error_text(errno)));
  }
  return file;
}

// In the child: hands a file down under a high number that survives exec, and names it in the environment.
bool pass_descriptor(int fd, const char* variable) {
  struct rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const int lowest = static_cast<int>(limit.rlim_cur > 2 * 64 ? std::min(kStatsFd, limit.rlim_cur - 64) : 3);
  const int passed = ::fcntl(fd, F_DUPFD, lowest);
  if (passed < 0) return false;
  ::setenv(variable, std::to_string(passed).c_str(), 1);
  return true;
}

bool read_stats(int fd, alloc::Stats& stats) {
  if (::pread(fd, &stats, sizeof stats, 0) != static_cast<ssize_t>(sizeof stats)) return false;
  return stats.version == alloc::kStatsVersion && stats.class_count <= alloc::kMaxStatsClasses;
}

// State that the program must find as this command found it.
struct SignalState {
  sigset_t mask;
  struct sigaction child_ended;
};

// Starts the program in the signal state that this command was started in. `failed` gets an errno if exec fails.
pid_t start(const Launch& launch, int stats_fd, int stack_fd, const SignalState& original, int failed) {
  const pid_t child = ::fork();
  if (child < 0) throw Failure(kExitRefused, fmt::format("cannot start a process: {}", error_text(errno)));
  if (child > 0) return child;
  int error = pass_descriptor(stats_fd, "FREEHOLD_STATS_FD") ? 0 : errno;
  ::setenv("FREEHOLD_STATS_PID", std::to_string(::getpid()).c_str(), 1);
  if (stack_fd >= 0) (void)pass_descriptor(stack_fd, "FREEHOLD_REPORT_FD");
  ::sigaction(SIGCHLD, &original.child_ended, nullptr);
  ::sigprocmask(SIG_SETMASK, &original.mask, nullptr);
  if (error == 0) error = execute(launch);
  [[maybe_unused]] const auto written = ::write(failed, &error, sizeof error);
  ::_exit(kExitCannotExecute);
}

// The program was stopped, by Ctrl-Z or by a signal: stop too, so that the shell notices, and go on together.
void stop_too(pid_t child) {
  ::raise(SIGSTOP);
  ::kill(child, SIGCONT);
}

// Waits for the end of the program; until then forwards signals.
int wait_and_forward(pid_t child, const sigset_t& signals, struct rusage& usage) {
  for (;;) {
    int status = 0;
    const pid_t changed = ::wait4(child, &status, WNOHANG | WUNTRACED, &usage);
    if (changed < 0 && errno != EINTR) throw Failure(kExitRefused, fmt::format("lost the program: {}", error_text(errno)));
    if (changed == child) {
      if (!WIFSTOPPED(status)) return status;
      stop_too(child);
      continue;
    }
    siginfo_t info;
    const int signal = ::sigwaitinfo(&signals, &info);
    if (signal <= 0 || signal == SIGCHLD) continue;
    // The terminal signals the whole process group: the program has it already.
    if (info.si_code != SI_KERNEL) ::kill(child, signal);
  }
}

double seconds(const timeval& time) { return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec); }

}  // namespace

void cannot_start(const Launch& launch, int error) {
  throw Failure(error == ENOENT ? kExitNotFound : kExitCannotExecute,
                fmt::format("cannot execute {}: {}", printable(launch.program), error_text(error)));
}

int execute(const Launch& launch) {
  std::vector<char*> argv;
  for (const std::string& argument : launch.arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  for (const auto& [name, value] : launch.settings) ::setenv(name.c_str(), value.c_str(), 1);
  if (!launch.library.empty()) ::setenv("LD_PRELOAD", preload_value(launch.library, std::getenv("LD_PRELOAD")).c_str(), 1);
  ::execvp(launch.program.c_str(), argv.data());  // has a slash: no search; a text without "#!" goes to /bin/sh
  return errno;
}

void become(const Launch& launch) { cannot_start(launch, execute(launch)); }

Outcome supervise(const Launch& launch) {
  const FileDescriptor stats = stats_file();
  StackSocket stacks = stack_socket();
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw Failure(kExitRefused, fmt::format("no pipe: {}", error_text(errno)));
  const FileDescriptor failed_to_read(ends[0]);
  FileDescriptor failed_to_write(ends[1]);

  const sigset_t signals = forwarded_signals();
  SignalState original;
  ::sigprocmask(SIG_BLOCK, &signals, &original.mask);
  struct sigaction notice{};  // a caller that ignores SIGCHLD would make children vanish unseen
  ::sigaction(SIGCHLD, &notice, &original.child_ended);
  const auto begin = std::chrono::steady_clock::now();
  const pid_t child = start(launch, stats.get(), stacks.program.get(), original, failed_to_write.get());
  failed_to_write.close();
  stacks.program.close();
  answer_stacks(std::move(stacks.command));

  Outcome outcome;
  outcome.process = child;
  struct rusage usage{};
  outcome.wait_status = wait_and_forward(child, signals, usage);
  outcome.elapsed_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  ::sigprocmask(SIG_SETMASK, &original.mask, nullptr);
  if (int error = 0; ::read(failed_to_read.get(), &error, sizeof error) == sizeof error) cannot_start(launch, error);
  outcome.user_seconds = seconds(usage.ru_utime);
  outcome.system_seconds = seconds(usage.ru_stime);
  outcome.peak_rss_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
  outcome.has_stats = read_stats(stats.get(), outcome.stats);
  return outcome;
}

void end_like(int wait_status) {
  std::fflush(nullptr);
  if (WIFEXITED(wait_status)) ::_exit(WEXITSTATUS(wait_status));
  const int signal = WTERMSIG(wait_status);
  const struct rlimit no_core{};
  ::setrlimit(RLIMIT_CORE, &no_core);  // the program's core is the one of interest
  ::signal(signal, SIG_DFL);
  sigset_t only;
  ::sigemptyset(&only);
  ::sigaddset(&only, signal);
  ::sigprocmask(SIG_UNBLOCK, &only, nullptr);
  ::raise(signal);
  ::_exit(128 + signal);
}

}  // namespace freehold::inline tools
