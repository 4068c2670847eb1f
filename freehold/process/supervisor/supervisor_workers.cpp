// SPDX-License-Identifier: MIT
// Workers of a supervisor: how they start, how they end, and what their end says about the next start.
#include "freehold/process/supervisor/supervisor.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "freehold/os/child_environment.hpp"
#include "freehold/os/process_handle.hpp"
#include "freehold/process/process_info.hpp"

namespace freehold::process {
namespace {

ExitReason exit_reason_of(WorkerExit status) noexcept {
  switch (status) {
    case WorkerExit::kClosed: return ExitReason::kClosed;
    case WorkerExit::kIdle: return ExitReason::kIdle;
    case WorkerExit::kMaxTasks: return ExitReason::kMaxTasks;
    case WorkerExit::kMaxRss: return ExitReason::kMaxRss;
    case WorkerExit::kMaxAge: return ExitReason::kMaxAge;
    case WorkerExit::kRevoked:
    case WorkerExit::kNotConfined:
    case WorkerExit::kNoTable:
    case WorkerExit::kNoComponent: break;
  }
  return ExitReason::kExit;
}

bool retired(ExitReason reason) noexcept {
  return reason == ExitReason::kClosed || reason == ExitReason::kIdle || reason == ExitReason::kMaxTasks ||
         reason == ExitReason::kMaxRss || reason == ExitReason::kMaxAge;
}

// Explains the exit status of a worker that never came up.
const char* meaning(WorkerExit status) noexcept {
  switch (status) {
    case WorkerExit::kNoTable: return " (it is of another version of Freehold than the pool, or the table was damaged)";
    case WorkerExit::kNoComponent: return " (the component cannot be loaded, as it says on standard error)";
    case WorkerExit::kNotConfined: return " (the kernel cannot confine it as asked, as it says on standard error)";
    default: return "";
  }
}

// A limit as workers get it, where 0 stands for none.
std::uint64_t count_of(std::optional<std::uint64_t> limit) noexcept {
  return limit ? std::max<std::uint64_t>(*limit, 1) : 0;
}

// The command line and the environment of a worker.
struct WorkerProgram {
  WorkerProgram(const ProcessPoolOptions& options, unsigned slot, std::uint32_t epoch) : words(options.command) {
    char text[256];
    std::snprintf(text, sizeof text, "%u %d %u %llu %llu %llu %llu", slot, ::getpid(), epoch,
                  static_cast<unsigned long long>(nanoseconds_of(options.idle_timeout)),
                  static_cast<unsigned long long>(nanoseconds_of(options.max_age)),
                  static_cast<unsigned long long>(count_of(options.max_tasks)),
                  static_cast<unsigned long long>(count_of(options.max_rss_bytes)));
    os::Variables set{{kWorkerVariable, text}};
    if (options.confinement.wanted()) set.emplace_back(kConfineVariable, text_of(options.confinement));
    variables = os::environment_with(set);
  }

  std::vector<std::string> words, variables;
};

}  // namespace

unsigned Supervisor::live() const noexcept {
  unsigned n = 0;
  for (unsigned slot = 0; slot < table_.shape().workers; ++slot) n += slots_[slot].pid.load(std::memory_order_relaxed) != 0;
  return n;
}

unsigned Supervisor::starting() const noexcept {
  unsigned n = 0;
  for (unsigned slot = 0; slot < table_.shape().workers; ++slot)
    n += slots_[slot].pid.load(std::memory_order_relaxed) != 0 && !table_.workers().is_up(slot);
  return n;
}

void Supervisor::start_workers(std::uint64_t time) {
  const unsigned most = std::min(options_.max_workers, table_.shape().workers);
  const unsigned least = std::max(options_.min_workers, starts_.is_awaited() ? 1U : 0U);
  starts_.look(time, kTick, most);
  while (time >= starts_.not_before() && live() < most) {
    const unsigned coming_up = starting();
    const bool may_start = starts_.may_start(coming_up) && supervision_.request_notify() &&
                           (coming_up == 0 || coming_up < table_.entries().count(TaskState::kReady));
    const bool wanted = is_broken() ? live() == 0 : may_start;
    if (live() >= least && !wanted) return;
    unsigned slot = 0;
    while (slots_[slot].pid.load(std::memory_order_relaxed) != 0) ++slot;
    spawn(slot);  // if it fails, not_before() says when to try again
    starts_.note_start(coming_up, time);
  }
}

void Supervisor::spawn(unsigned slot) {
  table_.workers().set_up(slot, false);
  pid_t pid = 0;
  int standard_error = -1;
  if (const int error = start_process(slot, pid, standard_error); error != 0) {
    const bool transient = error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE || error == ETXTBSY;
    const bool is_ours = error == ENOENT && !options_.component.empty();
    note_start_failure(std::string("cannot be started: ") + std::strerror(error) +
                           (is_ours ? "; FREEHOLD_WORKER_PROGRAM can name another one" : ""),
                       transient);
    return;
  }
  watch(slot, pid, standard_error);
}

// From now on the worker in this slot is `pid`; or it is killed if it cannot be watched.
void Supervisor::watch(unsigned slot, pid_t pid, int standard_error) {
  Slot& started = slots_[slot];
  started.pidfd = os::open_process(pid);  // not reaped yet, so it is this one
  // If the program ignores SIGCHLD or reaps all children itself, it can be gone already, with the task that it took.
  const bool is_gone = started.pidfd < 0 && errno == ESRCH;
  if (started.pidfd >= 0 && groups_ && !groups_->move_in(slot, pid)) {
    const int refused = errno;
    ::close(std::exchange(started.pidfd, -1));
    errno = refused;
  }
  if (started.pidfd < 0 && !is_gone) {
    const int refused = errno;
    if (standard_error >= 0) ::close(standard_error);
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    // It may have come far enough to take a task.
    recover(slot, pid, ExitReason::kSignal, {FailureKind::kSignal, SIGKILL});
    table_.workers().leave(slot);
    note_start_failure(std::string("cannot be watched: ") + std::strerror(refused), true);
    return;
  }
  started.kill_reason = {};
  started.cancelled = false;
  started.born = now();
  started.standard_error = standard_error;
  started.last_lines.clear();
  started.ended_before = table_.workers().ended(slot);
  started.pid.store(pid, std::memory_order_relaxed);
  started_.fetch_add(1, std::memory_order_relaxed);
  if (is_gone) reap(slot);
}

// Returns an errno, or 0 and the process; `error_end` is the reading end of its standard error, if that is kept.
int Supervisor::start_process(unsigned slot, pid_t& pid, int& error_end) {
  WorkerProgram program(options_, slot, epoch_);
  if (program.words.empty()) return ENOENT;
  const std::vector<char*> arguments = os::pointers_to(program.words), environment = os::pointers_to(program.variables);
  int standard_error[2] = {-1, -1};
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  if (!options_.keep_standard_input) ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (options_.keep_standard_error && ::pipe2(standard_error, O_CLOEXEC) == 0) {
    ::fcntl(standard_error[0], F_SETFL, O_NONBLOCK);
    ::posix_spawn_file_actions_adddup2(&files, standard_error[1], STDERR_FILENO);
  }
  ::posix_spawn_file_actions_adddup2(&files, memory_.fd(), kTableDescriptor);
  ::posix_spawn_file_actions_adddup2(&files, wakeup_fd_, kWakeupDescriptor);
  int next = kFirstInherited;
  for (const int fd : inherited_) ::posix_spawn_file_actions_adddup2(&files, fd, next++);
  ::posix_spawn_file_actions_addclosefrom_np(&files, next);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none, all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  const int error = ::posix_spawnp(&pid, arguments[0], &files, &attributes, arguments.data(), environment.data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  if (standard_error[1] >= 0) ::close(standard_error[1]);
  if (error != 0 && standard_error[0] >= 0) ::close(std::exchange(standard_error[0], -1));
  error_end = standard_error[0];
  return error;
}

// A worker did not come up. `transient`: for a reason that does not lie in its program.
void Supervisor::note_start_failure(const std::string& why, bool transient) {
  ended_[static_cast<std::size_t>(ExitReason::kNeverUp)].fetch_add(1, std::memory_order_relaxed);
  const std::string program = "the worker program " + (options_.command.empty() ? "" : options_.command[0]) + " ";
  const bool breaks = starts_.note_failure(now(), program + why, transient, live() != 0);
  if (!options_.log) return;
  report({.kind = PoolEvent::Kind::kStartFailed, .text = why, .last_lines = {}});
  if (breaks) report({.kind = PoolEvent::Kind::kBroken, .text = broken(), .last_lines = {}});
}

void Supervisor::note_ready_workers() noexcept {
  for (unsigned slot = 0; slot < table_.shape().workers; ++slot)
    if (slots_[slot].pid.load(std::memory_order_relaxed) != 0 && table_.workers().is_up(slot)) return starts_.note_up();
}

void Supervisor::kill(unsigned slot) noexcept {
  kill_with_children(slots_[slot].pid.load(std::memory_order_relaxed), slots_[slot].pidfd);
}

void Supervisor::reap_all() noexcept {
  for (unsigned slot = 0; slot < table_.shape().workers; ++slot)
    if (slots_[slot].pid.load(std::memory_order_relaxed) != 0) reap(slot);
}

// Nothing happens if the worker lives.
void Supervisor::reap(unsigned slot) noexcept {
  Slot& worker = slots_[slot];
  EndedWorker ended{};
  if (!has_ended(slot, ended)) return;
  if (worker.pidfd >= 0) ::close(std::exchange(worker.pidfd, -1));
  ended.pid = worker.pid.exchange(0, std::memory_order_relaxed);
  const Failure reason = reason_of(slot, ended);
  ended.was_up = table_.workers().is_up(slot);
  pass_standard_error_on(worker);
  ended.held = table_.entries().running(slot).has_value();
  // A component that calls exit() is not a worker that retires.
  if (ended.held && retired(ended.exit_reason)) ended.exit_reason = ExitReason::kExit;
  // Counts before the client of its task can see that the task is over.
  if (ended.was_up) ended_[static_cast<std::size_t>(ended.exit_reason)].fetch_add(1, std::memory_order_relaxed);
  recover(slot, ended.pid, ended.exit_reason, reason);
  table_.workers().leave(slot);
  if (worker.standard_error >= 0) ::close(std::exchange(worker.standard_error, -1));
  ended.ended_some = table_.workers().ended(slot) != worker.ended_before;
  note_end(worker, ended);
}

// Returns whether the worker's process has ended, and its status. Kills its children.
bool Supervisor::has_ended(unsigned slot, EndedWorker& ended) noexcept {
  const Slot& worker = slots_[slot];
  siginfo_t info{};
  const auto id = static_cast<id_t>(worker.pidfd);
  if (worker.pidfd >= 0 && ::waitid(P_PIDFD, id, &info, WEXITED | WNOHANG | WNOWAIT) == 0) {
    if (info.si_pid == 0) return false;
    kill_children(info.si_pid);
    ::waitid(P_PIDFD, id, &info, WEXITED | WNOHANG);
  } else {
    // Another part of the program has reaped it, or the program ignores SIGCHLD: only that it has ended can be known.
    if (worker.pidfd >= 0 && !has_died(worker.pidfd)) return false;
    kill_children(worker.pid.load(std::memory_order_relaxed));  // numbers are not used again so soon
    info.si_code = CLD_KILLED;
    info.si_status = 0;
  }
  ended.exited = info.si_code == CLD_EXITED;
  ended.status = info.si_status;
  return true;
}

// Why an ended worker has ended: sets its exit reason, and returns the reason for its task.
Failure Supervisor::reason_of(unsigned slot, EndedWorker& ended) noexcept {
  const Slot& worker = slots_[slot];
  const auto status = static_cast<WorkerExit>(ended.status);
  const bool out_of_memory = groups_ && groups_->has_killed(slot);
  if (worker.kill_reason.kind != FailureKind::kNone) {
    ended.exit_reason = worker.kill_reason.kind == FailureKind::kDeadline ? ExitReason::kDeadline : ExitReason::kMemory;
    if (worker.cancelled) ended.exit_reason = ExitReason::kCancelled;
    return worker.kill_reason;
  }
  if (out_of_memory && !ended.exited && ended.status == SIGKILL) {
    ended.exit_reason = ExitReason::kMemory;
    return {FailureKind::kMemory, static_cast<std::int32_t>(options_.kill_rss_bytes.value_or(0) >> 20)};
  }
  // Its task was taken from it, and not by the supervisor: a task that makes itself ready again would run for ever.
  if (ended.exited && status == WorkerExit::kRevoked) task_revoked_ = true;
  ended.exit_reason = ended.exited ? exit_reason_of(status) : ExitReason::kSignal;
  return {ended.exited ? FailureKind::kExit : FailureKind::kSignal, ended.status};
}

// The tasks that the dead worker held go to other workers, or fail.
void Supervisor::recover(unsigned slot, int pid, ExitReason exit_reason, Failure reason) {
  const auto told = [&](std::uint32_t entry, TaskWord word, bool handed_on) {
    handed_on_.fetch_add(handed_on ? 1 : 0, std::memory_order_relaxed);
    if (watch_.dies_too_often(entry, word.generation())) task_revoked_ = true;
    using Kind = PoolEvent::Kind;
    if (options_.log)
      report({.kind = handed_on          ? Kind::kTaskHandedOn
                      : word.abandoned() ? Kind::kTaskDropped
                                         : Kind::kTaskFailed,
              .worker = pid,
              .exit_reason = exit_reason,
              .reason = reason,
              .task = id_of({entry, word.generation()}),
              .attempt = word.attempt() + 1,
              .text = {},
              .last_lines = slots_[slot].last_lines});
  };
  supervision_.recover_worker(slot, reason, options_.max_attempts, told);
}

// Passes on all that has arrived, and keeps the end of it.
void Supervisor::pass_standard_error_on(Slot& slot) noexcept {
  constexpr std::size_t kKept = 2048;
  char some[4096];
  for (ssize_t n = 0; slot.standard_error >= 0 && (n = ::read(slot.standard_error, some, sizeof some)) > 0;) {
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, some, static_cast<std::size_t>(n));
    slot.last_lines.append(some, static_cast<std::size_t>(n));
    if (slot.last_lines.size() > kKept) slot.last_lines.erase(0, slot.last_lines.size() - kKept);
  }
}

// Decides from the worker's end when the next one starts.
void Supervisor::note_end(const Slot& worker, const EndedWorker& ended) {
  if (ended.was_up) {
    // A worker that died of its task says nothing about the next one.
    starts_.note_end(retired(ended.exit_reason) || ended.held || ended.ended_some, now());
    if (options_.log)
      report({.kind = PoolEvent::Kind::kWorkerEnded,
              .worker = ended.pid,
              .exit_reason = ended.exit_reason,
              .text = {},
              .last_lines = worker.last_lines});
  } else if (worker.kill_reason.kind == FailureKind::kDeadline) {
    note_start_failure("does not come up within " + std::to_string(worker.kill_reason.value) + " ms", true);
  } else {
    const std::string status = std::to_string(ended.status);
    if (ended.exited)
      note_start_failure(
          "ends before it takes a task, with status " + status + meaning(static_cast<WorkerExit>(ended.status)), false);
    else
      note_start_failure("is killed before it takes a task, by signal " + status, ended.status == SIGKILL);
  }
}

}  // namespace freehold::process
