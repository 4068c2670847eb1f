#include "freehold/process/supervisor.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <utility>

#include "freehold/process/client.hpp"

extern char** environ;

namespace freehold::process {
namespace {

int open_process(int pid) noexcept { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }
void kill_process(int pidfd) noexcept { ::syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, nullptr, 0); }
// The component's children, which are in the worker's group. Pre: the worker was not reaped, so its number is nobody else's.
void kill_group(int pid) noexcept { ::kill(-pid, SIGKILL); }

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

}  // namespace

const char* text(ExitReason reason) noexcept {
  switch (reason) {
    case ExitReason::kSignal: return "signal";
    case ExitReason::kExit: return "exit";
    case ExitReason::kDeadline: return "deadline";
    case ExitReason::kMemory: return "memory";
    case ExitReason::kIdle: return "idle";
    case ExitReason::kMaxTasks: return "max_tasks";
    case ExitReason::kMaxRss: return "max_rss";
    case ExitReason::kMaxAge: return "max_age";
    case ExitReason::kClosed: return "closed";
    case ExitReason::kNeverUp: return "never up";
    case ExitReason::kCancelled: return "cancelled";
  }
  return "?";
}

namespace {

// What the exit status of a worker that never came up means.
const char* meaning(WorkerExit status) noexcept {
  switch (status) {
    case WorkerExit::kNoTable: return " (it is of another version of Freehold than the pool, or the table was damaged)";
    case WorkerExit::kNoComponent: return " (the component cannot be loaded, as it says on standard error)";
    case WorkerExit::kNotConfined: return " (the kernel cannot confine it as asked, as it says on standard error)";
    default: return "";
  }
}

}  // namespace

std::string text(Failure failure) {
  const std::string value = std::to_string(failure.value);
  switch (failure.kind) {
    case FailureKind::kNone: return "it is well";
    case FailureKind::kSignal:
      return failure.value == 0 ? "its worker was killed" : "its worker was killed by signal " + value;
    case FailureKind::kExit: return "its worker exited with status " + value;
    case FailureKind::kDeadline: return "it took longer than " + value + " ms";
    case FailureKind::kMemory: return "its worker grew beyond " + value + " MiB";
    case FailureKind::kComponent: return "the component returned " + value;
    case FailureKind::kNoWorker: return "no worker can be started";
    case FailureKind::kCorrupt: return "a component has written into the table of tasks";
    case FailureKind::kRefused: return "it was refused";
  }
  return "?";
}

std::string text(const PoolEvent& event) {
  using Kind = PoolEvent::Kind;
  const std::string worker = "worker " + std::to_string(event.worker);
  const std::string task =
      "task " + std::to_string(event.task) + ", attempt " + std::to_string(event.attempt) + ", " + worker;
  switch (event.kind) {
    case Kind::kWorkerEnded: return worker + " has ended: " + text(event.exit_reason);
    case Kind::kTaskHandedOn: return task + ": " + text(event.reason) + "; it goes to another one";
    case Kind::kTaskFailed: return task + ": " + text(event.reason) + "; it has failed";
    case Kind::kTaskDropped: return task + ": " + text(event.reason) + "; it was cancelled";
    case Kind::kStartFailed: return "a worker program " + event.text;
    case Kind::kBroken: return event.text;
    case Kind::kDamaged:
      return "a component has written into the task table (" + event.text + "): all its workers and tasks begin anew";
  }
  return "?";
}

Supervisor::Supervisor(const SharedMemory& memory, int wakeup_fd, SupervisorOptions options)
    : memory_(memory), table_(memory.data()), wakeup_fd_(wakeup_fd), options_(std::move(options)) {
  slots_ = std::make_unique<Slot[]>(table_.shape().workers);
  observed_.resize(table_.shape().entries);
  sockets_.assign(table_.shape().clients, -1);
  if (!options_.memory_cgroup.empty()) {
    // A task's room in the table counts for the worker that uses it first, and is no memory of its own.
    const std::uint64_t limit = options_.kill_rss + table_.area_bytes();
    groups_ = std::make_unique<MemoryGroups>(options_.memory_cgroup, table_.shape().workers, limit);
  }
}

Supervisor::~Supervisor() {
  stop();
  for (const int socket : pending_clients_) ::close(socket);
}

void Supervisor::serve(int socket) {
  {
    const std::lock_guard guard(pending_clients_lock_);
    pending_clients_.push_back(socket);
  }
  notify(wakeup_fd_);
}

void Supervisor::accept_clients() {
  std::vector<int> pending;
  {
    const std::lock_guard guard(pending_clients_lock_);
    pending.swap(pending_clients_);
  }
  for (const int socket : pending) {
    unsigned slot = 1;
    while (slot < sockets_.size() && sockets_[slot] >= 0) ++slot;
    // Where a child of ours has a copy of the socket, its closing does not tell the client that we are dead; this does.
    const int self = slot < sockets_.size() ? open_process(::getpid()) : -1;
    if (self >= 0 && send_client_setup(socket, {memory_.fd(), wakeup_fd_, self, slot}))
      sockets_[slot] = socket;
    else
      ::close(socket);
    if (self >= 0) ::close(self);
  }
}

// Its end of the socket is closed, which the system does after its memory is gone.
void Supervisor::remove_client(unsigned slot) noexcept {
  ::close(std::exchange(sockets_[slot], -1));
  table_.recover_client(slot);
}

bool Supervisor::start() noexcept {
  // The client's signals are the client's threads' business.
  sigset_t all, former;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &former);
  const int error = ::pthread_create(&thread_, nullptr, &Supervisor::thread_main, this);
  ::pthread_sigmask(SIG_SETMASK, &former, nullptr);
  has_thread_ = error == 0;
  owner_ = ::getpid();
  errno = error;
  return has_thread_;
}

void Supervisor::stop() noexcept {
  // A child of fork has neither the thread nor the workers.
  if (has_thread_ && owner_ != ::getpid()) return;
  stopping_.store(true);
  notify(wakeup_fd_);
  if (!std::exchange(has_thread_, false)) return;
  ::pthread_join(thread_, nullptr);
}

void* Supervisor::thread_main(void* supervisor) {
  static_cast<Supervisor*>(supervisor)->run();
  return nullptr;
}

void Supervisor::run() {
  take_over();
  while (!stopping_.load()) {
    const std::uint64_t time = now();
    accept_clients();
    look_for_damage(time);
    kill_overdue(time);
    kill_large(time);
    kill_hung_starts(time);
    table_.fail_expired(time);
    table_.begin_due(time);
    help_stuck_tasks(time);
    note_ready_workers();
    start_workers(time);
    if (broken_.load(std::memory_order_relaxed)) table_.fail_ready({FailureKind::kNoWorker, 0});
    wait(time);
    reap_all();
  }
  shut_down();
}

// What a former supervisor of this table has left: its workers are dead or dying, since they die with it.
void Supervisor::take_over() noexcept {
  epoch_ = table_.new_epoch();
  for (unsigned slot = 0; slot < table_.shape().workers; ++slot) {
    if (const std::uint64_t identity = table_.identity(slot); identity != 0) {
      const int pidfd = open_process(pid_of(identity));
      if (pidfd >= 0) {
        if (identity_of(pid_of(identity)) == identity) {
          kill_group(pid_of(identity));
          kill_process(pidfd);
          pollfd dead{pidfd, POLLIN, 0};
          while (::poll(&dead, 1, -1) < 0 && errno == EINTR) {
          }
        }
        ::close(pidfd);
      }
    }
    recover(slot, pid_of(table_.identity(slot)), ExitReason::kSignal, {FailureKind::kSignal, SIGKILL});
    table_.leave(slot);
  }
  table_.recover_client(TaskWord::kPurger);
  table_.recover_worker(TaskWord::kSupervisor, {FailureKind::kNoWorker, 0}, 1);
}

unsigned Supervisor::live() const noexcept {
  unsigned n = 0;
  for (unsigned slot = 0; slot < table_.shape().workers; ++slot) n += slots_[slot].pid.load(std::memory_order_relaxed) != 0;
  return n;
}
unsigned Supervisor::starting() const noexcept {
  unsigned n = 0;
  for (unsigned slot = 0; slot < table_.shape().workers; ++slot)
    n += slots_[slot].pid.load(std::memory_order_relaxed) != 0 && !table_.is_up(slot);
  return n;
}

// One comes up for waiting work, so that short tasks do not start as many workers as they are. While it is not up and tasks
// still wait, each tick doubles how many may come up at once.
void Supervisor::start_workers(std::uint64_t time) {
  const unsigned most = std::min(options_.max_workers, table_.shape().workers);
  if (time - doubled_at_ >= options_.tick && max_starting_ < most) {
    doubled_at_ = time;
    max_starting_ *= 2;
  }
  while (time >= not_before_ && live() < most) {
    const unsigned coming = starting();
    if (coming == 0) max_starting_ = 1;
    const bool may_come =
        coming < max_starting_ && table_.request_notify() && (coming == 0 || coming < table_.count(TaskState::kReady));
    const bool wanted = broken_.load(std::memory_order_relaxed) ? live() == 0 : may_come;
    if (live() >= options_.min_workers && !wanted) return;
    unsigned slot = 0;
    while (slots_[slot].pid.load(std::memory_order_relaxed) != 0) ++slot;
    spawn(slot);  // if it fails, retry_later() says when to try again
    if (coming == 0) doubled_at_ = time;
  }
}

// Returns an errno, or 0 and the process; `error_end` is where its standard error can be read, if that is kept.
int Supervisor::start_process(unsigned slot, pid_t& pid, int& error_end) {
  char variable[256];
  const WorkerLimits& l = options_.limits;
  std::snprintf(variable, sizeof variable, "%s=%u %d %u %llu %llu %llu %llu", kWorkerVariable, slot, ::getpid(), epoch_,
                static_cast<unsigned long long>(l.idle), static_cast<unsigned long long>(l.max_age),
                static_cast<unsigned long long>(l.max_tasks), static_cast<unsigned long long>(l.max_rss));
  std::vector<char*> arguments, environment;
  for (const std::string& argument : options_.command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const std::size_t name = std::strlen(kWorkerVariable);
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (std::strncmp(*entry, kWorkerVariable, name) != 0 || (*entry)[name] != '=') environment.push_back(*entry);
  environment.push_back(variable);
  std::string confined = std::string(kConfineVariable) + "=" + text_of(options_.confinement);
  if (options_.confinement.wanted()) environment.push_back(confined.data());
  environment.push_back(nullptr);

  int standard_error[2] = {-1, -1};
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  if (options_.keep_standard_error && ::pipe2(standard_error, O_CLOEXEC) == 0) {
    ::fcntl(standard_error[0], F_SETFL, O_NONBLOCK);
    ::posix_spawn_file_actions_adddup2(&files, standard_error[1], STDERR_FILENO);
  }
  ::posix_spawn_file_actions_adddup2(&files, memory_.fd(), kTableDescriptor);
  ::posix_spawn_file_actions_adddup2(&files, wakeup_fd_, kWakeupDescriptor);
  ::posix_spawn_file_actions_addclosefrom_np(&files, kWakeupDescriptor + 1);
  posix_spawnattr_t how;
  ::posix_spawnattr_init(&how);
  sigset_t none, all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&how, &none);
  ::posix_spawnattr_setsigdefault(&how, &all);
  ::posix_spawnattr_setpgroup(&how, 0);
  ::posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  const int error = arguments[0] == nullptr
                        ? ENOENT
                        : ::posix_spawnp(&pid, arguments[0], &files, &how, arguments.data(), environment.data());
  ::posix_spawnattr_destroy(&how);
  ::posix_spawn_file_actions_destroy(&files);
  if (standard_error[1] >= 0) ::close(standard_error[1]);
  if (error != 0 && standard_error[0] >= 0) ::close(std::exchange(standard_error[0], -1));
  error_end = standard_error[0];
  return error;
}

void Supervisor::spawn(unsigned slot) {
  table_.set_up(slot, false);
  pid_t pid = 0;
  int standard_error = -1;
  if (const int error = start_process(slot, pid, standard_error); error != 0) {
    const bool transient = error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE || error == ETXTBSY;
    note_start_failure(std::string("cannot be started: ") + std::strerror(error), transient);
    return;
  }
  Slot& started = slots_[slot];
  started.pidfd = open_process(pid);  // not reaped yet, so it is this one
  if (started.pidfd >= 0 && groups_ && !groups_->move_in(slot, pid)) {
    const int refused = errno;
    ::close(std::exchange(started.pidfd, -1));
    errno = refused;
  }
  if (started.pidfd < 0) {
    const int refused = errno;
    if (standard_error >= 0) ::close(standard_error);
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    // It may have come far enough to take a task.
    recover(slot, pid, ExitReason::kSignal, {FailureKind::kSignal, SIGKILL});
    table_.leave(slot);
    note_start_failure(std::string("cannot be watched: ") + std::strerror(refused), true);
    return;
  }
  started.kill_reason = {};
  started.cancelled = false;
  started.born = now();
  started.standard_error = standard_error;
  started.last_lines.clear();
  started.ended_before = table_.ended(slot);
  started.pid.store(pid, std::memory_order_relaxed);
  started_.fetch_add(1, std::memory_order_relaxed);
}

// A worker could not begin. `transient`: for a reason that is not its program's.
void Supervisor::note_start_failure(const std::string& why, bool transient) {
  ended_[static_cast<std::size_t>(ExitReason::kNeverUp)].fetch_add(1, std::memory_order_relaxed);
  const std::uint64_t time = now();
  if (start_failures_++ == 0) {
    failing_since_ = time;
    failure_is_transient_ = false;
  }
  failure_is_transient_ = failure_is_transient_ || transient;
  retry_later();
  if (options_.log) report({.kind = PoolEvent::Kind::kStartFailed, .text = why, .last_lines = {}});
  if (live() != 0 || may_still_start(time)) return;
  {
    const std::lock_guard guard(broken_reason_lock_);
    broken_reason_ = "the worker program " + (options_.command.empty() ? "" : options_.command[0]) + " " + why;
  }
  const bool before = broken_.exchange(true, std::memory_order_release);  // pairs with is_broken()
  if (!before && options_.log) report({.kind = PoolEvent::Kind::kBroken, .text = broken(), .last_lines = {}});
}

// Whether the next worker may come up although the last ones in a row did not.
bool Supervisor::may_still_start(std::uint64_t time) const noexcept {
  if (start_failures_ < options_.start_failures) return true;
  return (was_up_ || failure_is_transient_) && time - failing_since_ < options_.start_timeout;
}

void Supervisor::note_ready_workers() noexcept {
  for (unsigned slot = 0; slot < table_.shape().workers; ++slot) {
    if (slots_[slot].pid.load(std::memory_order_relaxed) == 0 || !table_.is_up(slot)) continue;
    was_up_ = true;
    start_failures_ = 0;
    broken_.store(false, std::memory_order_relaxed);
    return;
  }
}

void Supervisor::retry_later() noexcept {
  constexpr std::uint64_t kMillisecond = 1'000'000;
  if (++unproductive_ <= 2) return;
  not_before_ = now() + (kMillisecond << std::min(unproductive_ - 3, 10u));
}

void Supervisor::kill_overdue(std::uint64_t time) noexcept {
  // A worker that was stopped before it could say when it began has begun when it was first seen.
  const auto since = [&](const Claim& claim, std::uint64_t started, std::uint64_t limit) -> std::uint64_t {
    const std::uint64_t seen = unchanged_since(claim.entry, claim.word, time);
    const std::uint64_t begun = started != 0 ? started : seen;
    if (time <= begun || time - begun <= limit) return begun;
    return has_had_cpu_time(claim, time, time - begun - limit) ? begun : 0;
  };
  while (const std::optional<Claim> claim = table_.find_overdue(time, since)) {
    if (claim->word.worker() >= table_.shape().workers) continue;  // damage, which the next look sees
    const std::uint64_t limit = table_.limit(claim->entry) / 1'000'000;
    const auto milliseconds =
        static_cast<std::int32_t>(table_.expired(claim->entry, time) ? table_.within_ms(claim->entry) : limit);
    slots_[claim->word.worker()].kill_reason = {FailureKind::kDeadline, milliseconds};
    slots_[claim->word.worker()].cancelled = table_.limit(claim->entry) == Table::kKilled;
    kill(claim->word.worker());
  }
}

// When a look first found the entry as it stands now.
std::uint64_t Supervisor::unchanged_since(std::uint32_t entry, TaskWord word, std::uint64_t time) noexcept {
  Observation& seen = observed_[entry];
  if (!seen.word.same_attempt(word)) {
    seen.word = word;
    seen.since = time;
    seen.helped = false;
  }
  return seen.since;
}

void Supervisor::help_stuck_tasks(std::uint64_t time) noexcept {
  const auto stuck = [&](std::uint32_t entry, TaskWord word) {
    const bool is_stuck = time - unchanged_since(entry, word, time) >= options_.tick;
    if (!word.is_over()) return is_stuck;
    // Once: a result may wait for its client for as long as that likes.
    return is_stuck && !std::exchange(observed_[entry].helped, true);
  };
  table_.help_stuck(stuck);
}

// A worker that waited for a CPU when its task's limit passed gets 5 ms of its own before it is killed. Without that 1 of a
// million empty tasks failed at a limit of 20 ms on a machine with four runnable threads for each CPU.
bool Supervisor::has_had_cpu_time(const Claim& claim, std::uint64_t time, std::uint64_t beyond) noexcept {
  constexpr std::uint64_t kOwnTime = 5'000'000, kMostGrace = 1'000'000'000;
  if (claim.word.worker() >= table_.shape().workers) return false;
  Slot& slot = slots_[claim.word.worker()];
  const std::uint64_t waited = time_without_cpu(slot.pid.load(std::memory_order_relaxed));
  if (!slot.overdue.same_attempt(claim.word) || slot.overdue_entry != claim.entry) {
    slot.overdue = claim.word;
    slot.overdue_entry = claim.entry;
    slot.overdue_since = time;
    slot.overdue_cpu_wait = waited;
    return false;
  }
  const std::uint64_t elapsed = time - slot.overdue_since, lost = waited - slot.overdue_cpu_wait;
  return beyond >= kMostGrace || elapsed >= lost + kOwnTime;
}

void Supervisor::kill_large(std::uint64_t time) noexcept {
  if (options_.kill_rss == 0 || groups_ || time - last_look_at_memory_ < options_.tick) return;
  last_look_at_memory_ = time;
  for (unsigned slot = 0; slot < table_.shape().workers; ++slot) {
    const int pid = slots_[slot].pid.load(std::memory_order_relaxed);
    if (pid == 0 || own_resident_bytes(pid) <= options_.kill_rss) continue;
    const std::optional<Claim> claim = table_.running(slot);
    if (claim && !claim->word.overdue() && !table_.mark_for_kill(*claim)) continue;  // it has just finished: not now
    slots_[slot].kill_reason = {FailureKind::kMemory, static_cast<std::int32_t>(options_.kill_rss >> 20)};
    kill(slot);
  }
}

void Supervisor::kill_hung_starts(std::uint64_t time) noexcept {
  for (unsigned slot = 0; options_.load_limit != 0 && slot < table_.shape().workers; ++slot) {
    Slot& worker = slots_[slot];
    if (worker.pid.load(std::memory_order_relaxed) == 0 || table_.is_up(slot) || time <= worker.born) continue;
    if (time - worker.born <= options_.load_limit) continue;
    worker.kill_reason = {FailureKind::kDeadline, static_cast<std::int32_t>(options_.load_limit / 1'000'000)};
    kill(slot);
  }
}

void Supervisor::kill(unsigned slot) noexcept {
  kill_group(slots_[slot].pid.load(std::memory_order_relaxed));
  kill_process(slots_[slot].pidfd);
}

// Not while tasks come and go, or each of them would have to tell us.
bool Supervisor::may_sleep(std::uint64_t time) noexcept {
  std::uint64_t ended = 0;
  for (unsigned slot = 0; slot < table_.shape().workers; ++slot) ended += table_.ended(slot);
  if (std::exchange(ended_in_all_, ended) != ended) no_sleep_before_ = time + options_.tick;
  return time >= no_sleep_before_ && starting() == 0;
}

// Gives back what free entries do not need; after a delay, since a task of 1 MiB costs several times as much with fresh
// pages. Returns after how long to look again.
std::uint64_t Supervisor::purge(std::uint64_t time) {
  std::uint64_t next = sync::kForever;
  for (std::uint32_t i = 0; table_.is_large() && i < table_.shape().entries; ++i) {
    const TaskWord word = table_.word(i);
    if (word.state() != TaskState::kFree || word.generation() == observed_[i].clean_generation) continue;
    const std::uint64_t free_for = time - unchanged_since(i, word, time);
    if (free_for < options_.purge_delay) {
      next = std::min(next, options_.purge_delay - free_for);
      continue;
    }
    const std::optional<Ticket> ticket = table_.try_acquire_entry(i, TaskWord::kPurger);
    if (!ticket) continue;
    table_.purge(i, [&](std::uint64_t offset, std::uint64_t bytes) { memory_.purge(offset, bytes); });
    observed_[i].clean_generation = ticket->generation;
    table_.drop(*ticket);
  }
  return next;
}

// Until the wakeup eventfd is notified, a worker ends, or it is time to look again.
void Supervisor::wait(std::uint64_t time) {
  std::vector<pollfd> events{{wakeup_fd_, POLLIN, 0}};
  for (unsigned slot = 0; slot < table_.shape().workers; ++slot)
    if (slots_[slot].pid.load(std::memory_order_relaxed) != 0) events.push_back({slots_[slot].pidfd, POLLIN, 0});
  const std::uint64_t next_purge = purge(time);
  const auto open = [&](std::uint32_t entry, TaskWord word) {
    static_cast<void>(unchanged_since(entry, word, time));
    return !observed_[entry].helped;
  };
  std::uint64_t sleep = may_sleep(time) && table_.prepare_idle(open) ? sync::kForever : options_.tick;
  sleep = std::min(sleep, next_purge);
  if (not_before_ > time) sleep = std::min(sleep, not_before_ - time);
  const int milliseconds = sleep == sync::kForever ? -1 : static_cast<int>(sleep / 1'000'000 + 1);
  const std::size_t first_error = events.size();
  for (unsigned slot = 0; options_.keep_standard_error && slot < table_.shape().workers; ++slot)
    if (slots_[slot].pid.load(std::memory_order_relaxed) != 0 && slots_[slot].standard_error >= 0)
      events.push_back({slots_[slot].standard_error, POLLIN, 0});
  std::vector<unsigned> clients;
  const std::size_t first_client = events.size();
  for (unsigned slot = 1; slot < sockets_.size(); ++slot) {
    if (sockets_[slot] < 0) continue;
    clients.push_back(slot);
    events.push_back({sockets_[slot], POLLIN | POLLRDHUP, 0});
  }
  if (::poll(events.data(), events.size(), milliseconds) <= 0) return;
  if (first_client != first_error)
    for (unsigned slot = 0; slot < table_.shape().workers; ++slot) pass_standard_error_on(slots_[slot]);
  for (std::size_t i = 0; i < clients.size(); ++i)
    if (events[first_client + i].revents != 0) remove_client(clients[i]);
  if ((events[0].revents & POLLIN) == 0) return;
  std::uint64_t notifications = 0;
  [[maybe_unused]] const ssize_t read = ::read(wakeup_fd_, &notifications, sizeof notifications);
}

// What the dead worker held goes to others, or fails.
void Supervisor::recover(unsigned slot, int pid, ExitReason exit_reason, Failure reason) {
  const auto told = [&](std::uint32_t entry, TaskWord word, bool handed_on) {
    handed_on_.fetch_add(handed_on ? 1 : 0, std::memory_order_relaxed);
    // The word counts attempts, unless the component writes into it.
    Observation& seen = observed_[entry];
    if (std::exchange(seen.deaths_generation, word.generation()) != word.generation()) seen.deaths = 0;
    if (++seen.deaths > TaskWord::kMaxAttempts) task_revoked_ = true;
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
  table_.recover_worker(slot, reason, options_.attempts, told);
}

void Supervisor::report(PoolEvent event) {
  if (options_.log)
    options_.log(event);
  else if (event.kind == PoolEvent::Kind::kDamaged)
    std::fprintf(stderr, "freehold: %s\n", text(event).c_str());
}

// What is there. Keeps its end.
void Supervisor::pass_standard_error_on(Slot& slot) noexcept {
  constexpr std::size_t kKept = 2048;
  char some[4096];
  for (ssize_t n = 0; slot.standard_error >= 0 && (n = ::read(slot.standard_error, some, sizeof some)) > 0;) {
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, some, static_cast<std::size_t>(n));
    slot.last_lines.append(some, static_cast<std::size_t>(n));
    if (slot.last_lines.size() > kKept) slot.last_lines.erase(0, slot.last_lines.size() - kKept);
  }
}

void Supervisor::reap_all() noexcept {
  for (unsigned slot = 0; slot < table_.shape().workers; ++slot)
    if (slots_[slot].pid.load(std::memory_order_relaxed) != 0) reap(slot);
}

// Nothing happens if the worker lives.
void Supervisor::reap(unsigned slot) noexcept {
  Slot& worker = slots_[slot];
  siginfo_t info{};
  const auto id = static_cast<id_t>(worker.pidfd);
  if (::waitid(P_PIDFD, id, &info, WEXITED | WNOHANG | WNOWAIT) == 0) {
    if (info.si_pid == 0) return;
    kill_group(info.si_pid);
    ::waitid(P_PIDFD, id, &info, WEXITED | WNOHANG);
  } else {
    // Somebody else has reaped it, or the program ignores SIGCHLD: only that it has ended can be known.
    pollfd dead{worker.pidfd, POLLIN, 0};
    if (::poll(&dead, 1, 0) != 1) return;
    kill_group(worker.pid.load(std::memory_order_relaxed));  // numbers are not used again so soon
    info.si_code = CLD_KILLED;
    info.si_status = 0;
  }
  ::close(worker.pidfd);
  worker.pidfd = -1;
  const int pid = worker.pid.exchange(0, std::memory_order_relaxed);

  const bool exited = info.si_code == CLD_EXITED;
  ExitReason exit_reason = exited ? exit_reason_of(static_cast<WorkerExit>(info.si_status)) : ExitReason::kSignal;
  Failure reason{exited ? FailureKind::kExit : FailureKind::kSignal, info.si_status};
  if (worker.kill_reason.kind != FailureKind::kNone) {
    reason = worker.kill_reason;
    exit_reason = reason.kind == FailureKind::kDeadline ? ExitReason::kDeadline : ExitReason::kMemory;
    if (worker.cancelled) exit_reason = ExitReason::kCancelled;
  }
  const bool out_of_memory = groups_ && groups_->has_killed(slot);
  if (out_of_memory && worker.kill_reason.kind == FailureKind::kNone && reason == Failure{FailureKind::kSignal, SIGKILL}) {
    reason = {FailureKind::kMemory, static_cast<std::int32_t>(options_.kill_rss >> 20)};
    exit_reason = ExitReason::kMemory;
  }
  // Its task was taken from it, and not by us: or a task that makes itself ready again would be run for ever.
  if (exited && static_cast<WorkerExit>(info.si_status) == WorkerExit::kRevoked &&
      worker.kill_reason.kind == FailureKind::kNone)
    task_revoked_ = true;
  const bool was_up = table_.is_up(slot);
  pass_standard_error_on(worker);
  const bool held = table_.running(slot).has_value();
  if (held && retired(exit_reason))
    exit_reason = ExitReason::kExit;  // a component that calls exit() is not a worker that retires
  // Before its task's client can see that it is over.
  if (was_up) ended_[static_cast<std::size_t>(exit_reason)].fetch_add(1, std::memory_order_relaxed);
  recover(slot, pid, exit_reason, reason);
  table_.leave(slot);
  if (worker.standard_error >= 0) ::close(std::exchange(worker.standard_error, -1));
  const bool ended_some = table_.ended(slot) != worker.ended_before;
  note_end(worker, {pid, info.si_status, exit_reason, exited, was_up, held, ended_some});
}

// What the worker's end says about the next one.
void Supervisor::note_end(const Slot& worker, const EndedWorker& ended) {
  if (ended.was_up) {
    was_up_ = true;
    start_failures_ = 0;
    broken_.store(false, std::memory_order_relaxed);
    if (options_.log)
      report({.kind = PoolEvent::Kind::kWorkerEnded,
              .worker = ended.pid,
              .exit_reason = ended.exit_reason,
              .text = {},
              .last_lines = worker.last_lines});
    // One that died of its task says nothing about the next worker.
    if (retired(ended.exit_reason) || ended.held || ended.ended_some)
      unproductive_ = 0;
    else
      retry_later();
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

namespace {

// What the supervisor knows of the table by itself.
struct KnownState {
  std::uint32_t own_epoch;
  const std::function<bool(unsigned)> is_live, is_connected;
  const std::function<bool(std::uint32_t, TaskWord)> lasts;
  std::vector<bool> asked;

  [[nodiscard]] static bool closed() noexcept { return false; }
  [[nodiscard]] std::uint32_t epoch() const noexcept { return own_epoch; }
  [[nodiscard]] bool has_another(unsigned worker) {
    const bool before = asked[worker];
    asked[worker] = true;
    return before;
  }
};

}  // namespace

void Supervisor::look_for_damage(std::uint64_t time) {
  KnownState known{
      .own_epoch = epoch_,
      .is_live = [&](unsigned worker) { return slots_[worker].pid.load(std::memory_order_relaxed) != 0; },
      .is_connected = [&](unsigned client) { return client == 0 || sockets_[client] >= 0; },
      .lasts = [&](std::uint32_t i, TaskWord word) { return time - unchanged_since(i, word, time) >= 2 * options_.tick; },
      .asked = std::vector<bool>(table_.shape().workers)};
  const char* what = table_.find_damage(known);
  const bool told = options_.local_client != nullptr && options_.local_client->take_damage_suspicion();
  if (what == nullptr && (told || task_revoked_)) what = "a task's state";
  if (what != nullptr) reset_table(what);
}

void Supervisor::reset_table(const char* what) {
  report({.kind = PoolEvent::Kind::kDamaged, .text = what, .last_lines = {}});
  wait_until_dead(0);
  task_revoked_ = false;
  damaged_.fetch_add(1, std::memory_order_relaxed);
  epoch_ = static_cast<std::uint32_t>(damaged_.load(std::memory_order_relaxed) << 16 | (now() >> 20 & 0xffff));
  // Odd multiples of the time: no ticket has this generation, but by a chance of 2^-32.
  table_.reset(static_cast<std::uint32_t>(now() * 0x9e3779b97f4a7c15 >> 32), epoch_);
  for (Observation& seen : observed_) seen = {};  // and what was used is purged later
}

void Supervisor::shut_down() {
  table_.close();
  wait_until_dead(now() + options_.grace);
  table_.fail_ready({FailureKind::kNoWorker, 0});
  for (unsigned slot = 1; slot < sockets_.size(); ++slot)
    if (sockets_[slot] >= 0) ::close(std::exchange(sockets_[slot], -1));
}

// Kills the workers that live then.
void Supervisor::wait_until_dead(std::uint64_t end) {
  while (live() != 0) {
    if (now() >= end)
      for (unsigned slot = 0; slot < table_.shape().workers; ++slot)
        if (slots_[slot].pid.load(std::memory_order_relaxed) != 0) kill(slot);
    std::vector<pollfd> workers;
    for (unsigned slot = 0; slot < table_.shape().workers; ++slot)
      if (slots_[slot].pid.load(std::memory_order_relaxed) != 0) workers.push_back({slots_[slot].pidfd, POLLIN, 0});
    ::poll(workers.data(), workers.size(), 10);
    reap_all();
  }
}

SupervisorStats Supervisor::stats() const noexcept {
  SupervisorStats stats;
  stats.live = live();
  stats.started = started_.load(std::memory_order_relaxed);
  stats.damaged = damaged_.load(std::memory_order_relaxed);
  for (unsigned slot = 0; slot < table_.shape().workers; ++slot) stats.retried += table_.retried(slot);
  stats.handed_on = handed_on_.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < kExitReasons; ++i) stats.ended[i] = ended_[i].load(std::memory_order_relaxed);
  return stats;
}

std::string Supervisor::broken() const {
  if (!is_broken()) return "";
  const std::lock_guard guard(broken_reason_lock_);
  return broken_reason_;
}

std::vector<int> Supervisor::pids() const {
  std::vector<int> pids;
  for (unsigned slot = 0; slot < table_.shape().workers; ++slot)
    if (const int pid = slots_[slot].pid.load(std::memory_order_relaxed); pid != 0) pids.push_back(pid);
  return pids;
}

}  // namespace freehold::process
