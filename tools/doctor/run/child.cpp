// SPDX-License-Identifier: MIT
#include "tools/doctor/run/child.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <system_error>
#include <utility>

#include "freehold/os/child_environment.hpp"
#include "freehold/os/process_handle.hpp"
#include "freehold/os/time_slice.hpp"
#include "tools/doctor/run/precedence.hpp"

namespace freehold::doctor {
namespace {

constexpr std::size_t kLastWords = 4096;
constexpr std::size_t kOutput = std::size_t{1} << 20;

double seconds(const timeval& time) { return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec); }

std::string preload_of(const LaunchOptions& options) {
  std::string value;
  for (const std::string& library : options.preload) value += (value.empty() ? "" : ":") + library;
  const char* const existing = std::getenv("LD_PRELOAD");
  if (existing != nullptr && *existing != '\0') value += (value.empty() ? "" : ":") + std::string(existing);
  return value;
}

// The caller's environment with what the options say.
std::vector<std::string> environment_of(const LaunchOptions& options) {
  os::Variables changes = options.environment;
  if (!options.preload.empty()) changes.emplace_back("LD_PRELOAD", preload_of(options));
  return os::environment_with(changes);
}

// Everything that the child needs, made before the fork: after it, only what a signal handler may do is done.
struct Prepared {
  std::vector<std::string> words, variables;
  std::vector<char*> argv, envp, shell_argv;
  cpu_set_t cpus;
  bool has_cpus = false, before_others = false;
  const char* file = nullptr;
  const char* input = nullptr;
  int out = -1, err = -1;
  int ends[2] = {-1, -1};  // a byte to the child's end lets it go on, errno comes back from it
  sigset_t mask{};
  pid_t parent = 0;
};

bool give_files(const Prepared& prepared) {
  const int in = ::open(prepared.input, O_RDONLY);
  const int out = prepared.out >= 0 ? prepared.out : ::open("/dev/null", O_WRONLY);
  const bool given = in >= 0 && out >= 0 && prepared.err >= 0 && ::dup2(in, STDIN_FILENO) >= 0 &&
                     ::dup2(out, STDOUT_FILENO) >= 0 && ::dup2(prepared.err, STDERR_FILENO) >= 0;
  for (const int fd : {in, out})
    if (fd > STDERR_FILENO) ::close(fd);
  return given;
}

[[noreturn]] void become(const Prepared& prepared) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != prepared.parent) ::_exit(127);  // the parent died before it could be noticed
  char go = 0;
  while (::read(prepared.ends[1], &go, 1) < 0 && errno == EINTR) {
  }
  const struct rlimit no_core{};
  ::setrlimit(RLIMIT_CORE, &no_core);  // one crash is a finding, ten files of its memory are a nuisance
  if (prepared.before_others)
    ::setpriority(PRIO_PROCESS, 0, kNiceBeforeOthers);  // a real-time parent's was reset
  else if (::sched_getscheduler(0) == SCHED_OTHER)
    os::set_time_slice(Courtesy::kSlice_ns);
  ::sigprocmask(SIG_SETMASK, &prepared.mask, nullptr);
  if (give_files(prepared) && (!prepared.has_cpus || ::sched_setaffinity(0, sizeof prepared.cpus, &prepared.cpus) == 0)) {
    ::execve(prepared.file, prepared.argv.data(), prepared.envp.data());
    if (errno == ENOEXEC) ::execve("/bin/sh", prepared.shell_argv.data(), prepared.envp.data());  // a script without "#!"
  }
  const int error = errno;
  [[maybe_unused]] const auto written = ::write(prepared.ends[1], &error, sizeof error);
  ::_exit(127);
}

}  // namespace

double now_s() noexcept {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

Tail::~Tail() {
  if (fd_ >= 0) ::close(fd_);
}

int Tail::open() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return -1;
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);  // of this end alone
  fd_ = ends[0];
  return ends[1];
}

void Tail::read() {
  char buffer[16384];
  while (fd_ >= 0) {
    const ssize_t got = ::read(fd_, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      ::close(std::exchange(fd_, -1));
      return;
    }
    text_.append(buffer, static_cast<std::size_t>(got));
    if (text_.size() > 2 * most_bytes_) text_.erase(0, text_.size() - most_bytes_);
  }
}

Child::Child(Command command, const LaunchOptions& options, const Host& host)
    : command_(std::move(command)), out_(kOutput), err_(kLastWords) {
  start(options, host);
}

Child::~Child() {
  if (group_ > 0) signal_group(SIGKILL);
  while (pid_ > 0 && ::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (end_fd_ >= 0) ::close(end_fd_);
}

void Child::start(const LaunchOptions& options, const Host& host) {
  Prepared prepared;
  prepared.words = command_.arguments;
  prepared.variables = environment_of(options);
  prepared.argv = os::pointers_to(prepared.words);
  prepared.envp = os::pointers_to(prepared.variables);
  prepared.file = command_.file.c_str();
  prepared.input = command_.input.c_str();
  prepared.shell_argv = {const_cast<char*>("sh"), const_cast<char*>(prepared.file)};
  if (!prepared.words.empty())
    prepared.shell_argv.insert(prepared.shell_argv.end(), prepared.argv.begin() + 1, prepared.argv.end());
  CPU_ZERO(&prepared.cpus);
  for (const unsigned cpu : options.cpus) CPU_SET(cpu, &prepared.cpus);
  prepared.has_cpus = !options.cpus.empty();
  prepared.before_others = command_.before_others;
  prepared.mask = host.mask;
  prepared.parent = ::getpid();

  int error = ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, prepared.ends) == 0 ? 0 : errno;
  prepared.err = err_.open();
  const bool has_out = command_.keep_output;
  if (has_out) prepared.out = out_.open();
  if (error == 0 && (prepared.err < 0 || (has_out && prepared.out < 0))) error = errno;
  if (error == 0) pid_ = ::fork();
  if (pid_ == 0) become(prepared);
  if (error == 0 && pid_ < 0) error = errno;
  for (const int end : {prepared.ends[1], prepared.err, prepared.out})
    if (end >= 0) ::close(end);
  if (pid_ > 0) {
    group_ = pid_;
    ::setpgid(pid_, pid_);
    instructions_.begin_instructions(pid_);  // while it waits: threads that have started would not be counted
    began_s_ = now_s();
    ::send(prepared.ends[0], "", 1, MSG_NOSIGNAL);
    if (::read(prepared.ends[0], &error, sizeof error) != sizeof error) error = 0;  // exec closed the other end
  }
  if (prepared.ends[0] >= 0) ::close(prepared.ends[0]);
  if (error != 0) {
    why_not_ = std::generic_category().message(error);
    while (pid_ > 0 && ::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
    pid_ = group_ = -1;
    return;
  }
  end_fd_ = os::open_process(pid_);
}

void Child::attend() {
  out_.read();
  err_.read();
  if (pid_ <= 0) return;
  int status = 0;
  struct rusage usage{};
  const double ended_s = now_s();  // wait4() may take long: it removes the process from /proc
  if (::wait4(pid_, &status, WNOHANG, &usage) != pid_) return;
  trial_.wall_s = ended_s - began_s_;
  trial_.user_s = seconds(usage.ru_utime);
  trial_.system_s = seconds(usage.ru_stime);
  trial_.peak_rss_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
  trial_.page_faults = static_cast<std::uint64_t>(usage.ru_minflt);
  trial_.voluntary_switches = static_cast<std::uint64_t>(usage.ru_nvcsw);
  trial_.involuntary_switches = static_cast<std::uint64_t>(usage.ru_nivcsw);
  trial_.instructions = instructions_.read();
  trial_.wait_status = status;
  pid_ = -1;
  signal_group(SIGKILL);  // what it left behind
  group_ = -1;            // the number may be another group's from now on
  out_.read();
  err_.read();
}

void Child::signal_group(int signal) const noexcept {
  if (group_ > 0) ::kill(-group_, signal);
  if (pid_ > 0 && ::getpgid(pid_) != group_) ::kill(pid_, signal);  // it left its group
}

}  // namespace freehold::doctor
