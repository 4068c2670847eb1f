// SPDX-License-Identifier: MIT
#include "freehold/process/supervisor/supervisor.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <utility>

#include "freehold/os/process_handle.hpp"
#include "freehold/process/client/client.hpp"
#include "freehold/process/process_info.hpp"
#include "freehold/process/signals.hpp"
#include "freehold/process/worker/worker_protocol.hpp"

namespace freehold::process {

Supervisor::Supervisor(const SharedMemory& memory, int wakeup_fd, ProcessPoolOptions options, Client* local_client)
    : memory_(memory),
      table_(memory.data()),
      wakeup_fd_(wakeup_fd),
      options_(std::move(options)),
      local_client_(local_client),
      slots_(std::make_unique<Slot[]>(table_.shape().workers)),
      clients_(memory, wakeup_fd, table_.shape().clients),
      watch_(table_.shape().entries) {
  for (const int fd : options_.inherited) inherited_.push_back(::fcntl(fd, F_DUPFD_CLOEXEC, kLowestPoolDescriptor));
  if (!options_.memory_cgroup.empty()) {
    // The kernel counts a task's area in the table for the worker that uses it first; it is not the worker's own memory.
    const std::uint64_t limit = *options_.kill_rss_bytes + table_.layout().area_bytes;
    groups_ = std::make_unique<MemoryGroups>(options_.memory_cgroup, table_.shape().workers, limit);
  }
}

Supervisor::~Supervisor() {
  stop();
  for (const int fd : inherited_) ::close(fd);
}

bool Supervisor::start() noexcept {
  const BlockedSignals blocked;
  const int error = ::pthread_create(&thread_, nullptr, &Supervisor::thread_main, this);
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

void Supervisor::wait_for_worker() noexcept {
  // No worker would come while the supervisor's own thread waits, in a callback, nor in a child of fork.
  if (::pthread_equal(::pthread_self(), thread_) != 0 || owner_ != ::getpid()) return;
  if (starts_.was_up()) return;
  starts_.want_worker();
  notify(wakeup_fd_);
  while (!starts_.was_up() && !is_broken() && !stopping_.load()) {
    constexpr timespec kLookInterval{0, 200'000};
    ::nanosleep(&kLookInterval, nullptr);
  }
}

void* Supervisor::thread_main(void* supervisor) {
  static_cast<Supervisor*>(supervisor)->run();
  return nullptr;
}

void Supervisor::run() {
  take_over();
  for (unsigned slot = 0; slot < table_.shape().workers; ++slot)
    slots_[slot].retried.store(table_.workers().retried(slot), std::memory_order_relaxed);
  retried_seen_at_.store(now(), std::memory_order_relaxed);
  while (!stopping_.load()) {
    const std::uint64_t time = now();
    clients_.accept();
    look_for_damage(time);
    kill_overdue(time);
    kill_large(time);
    kill_hung_starts(time);
    supervision_.fail_expired(time);
    supervision_.begin_due(time);
    help_stuck_tasks(time);
    note_ready_workers();
    start_workers(time);
    if (is_broken()) supervision_.fail_ready({FailureKind::kNoWorker, 0});
    wait(time);
    reap_all();
  }
  shut_down();
}

// Recovers the tasks of a former supervisor of this table. Its workers are dead or dying, since they die with it.
void Supervisor::take_over() noexcept {
  epoch_ = table_.workers().new_epoch();
  for (unsigned slot = 0; slot < table_.shape().workers; ++slot) {
    if (const std::uint64_t identity = table_.workers().identity(slot); identity != 0) {
      const int pidfd = os::open_process(pid_of(identity));
      if (pidfd >= 0) {
        if (identity_of(pid_of(identity)) == identity) {
          kill_with_children(pid_of(identity), pidfd);
          wait_for_death(pidfd);
        }
        ::close(pidfd);
      }
    }
    recover(slot, pid_of(table_.workers().identity(slot)), ExitReason::kSignal, {FailureKind::kSignal, SIGKILL});
    table_.workers().leave(slot);
  }
  supervision_.recover_client(TaskWord::kPurger);
  supervision_.recover_worker(TaskWord::kSupervisor, {FailureKind::kNoWorker, 0}, 1);
}

// It stays awake while tasks come and go, or each of them would have to notify it.
bool Supervisor::may_sleep(std::uint64_t time) noexcept {
  std::uint64_t ended = 0;
  for (unsigned slot = 0; slot < table_.shape().workers; ++slot) ended += table_.workers().ended(slot);
  if (std::exchange(ended_in_all_, ended) != ended) no_sleep_before_ = time + kTick;
  return time >= no_sleep_before_ && starting() == 0;
}

// Sleeps until the wakeup eventfd is notified, a worker ends, or it is time for the next check.
void Supervisor::wait(std::uint64_t time) {
  std::vector<pollfd> events{{wakeup_fd_, POLLIN, 0}};
  for (unsigned slot = 0; slot < table_.shape().workers; ++slot)
    if (slots_[slot].pid.load(std::memory_order_relaxed) != 0) events.push_back({slots_[slot].pidfd, POLLIN, 0});
  const std::uint64_t next_purge = purge(time);
  const auto open = [&](std::uint32_t entry, TaskWord word) {
    static_cast<void>(watch_.unchanged_since(entry, word, time));
    return !watch_.was_helped(entry);
  };
  std::uint64_t sleep = may_sleep(time) && supervision_.prepare_idle(open) ? sync::kForever : kTick;
  sleep = std::min(sleep, next_purge);
  if (starts_.not_before() > time) sleep = std::min(sleep, starts_.not_before() - time);
  const int milliseconds = sleep == sync::kForever ? -1 : static_cast<int>(sleep / 1'000'000 + 1);
  const std::size_t first_error = events.size();
  for (unsigned slot = 0; options_.keep_standard_error && slot < table_.shape().workers; ++slot)
    if (slots_[slot].pid.load(std::memory_order_relaxed) != 0 && slots_[slot].standard_error >= 0)
      events.push_back({slots_[slot].standard_error, POLLIN, 0});
  std::vector<unsigned> clients;
  const std::size_t first_client = events.size();
  for (unsigned slot = 1; slot < clients_.sockets().size(); ++slot) {
    if (!clients_.is_connected(slot)) continue;
    clients.push_back(slot);
    events.push_back({clients_.sockets()[slot], POLLIN | POLLRDHUP, 0});
  }
  if (::poll(events.data(), events.size(), milliseconds) <= 0) return;
  if (first_client != first_error)
    for (unsigned slot = 0; slot < table_.shape().workers; ++slot) pass_standard_error_on(slots_[slot]);
  for (std::size_t i = 0; i < clients.size(); ++i) {
    if (events[first_client + i].revents == 0) continue;
    clients_.remove(clients[i]);
    supervision_.recover_client(clients[i]);
  }
  if ((events[0].revents & POLLIN) != 0) drain_wakeup(wakeup_fd_);
}

void Supervisor::serve(int socket) {
  clients_.add(socket);
  notify(wakeup_fd_);
}

void Supervisor::report(const PoolEvent& event) {
  if (options_.log)
    options_.log(event);
  else if (event.kind == PoolEvent::Kind::kDamaged)
    std::fprintf(stderr, "freehold: %s\n", text(event).c_str());
}

void Supervisor::shut_down() {
  supervision_.close();
  wait_until_dead(now() + kGrace);
  supervision_.fail_ready({FailureKind::kNoWorker, 0});
  clients_.remove_all();
}

// Waits until no worker lives; kills those that live at `kill_at`.
void Supervisor::wait_until_dead(std::uint64_t kill_at) {
  while (live() != 0) {
    if (now() >= kill_at)
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
  const std::uint64_t time = now();
  for (unsigned slot = 0; slot < table_.shape().workers; ++slot) {
    const std::uint64_t count = table_.workers().retried(slot);
    stats.retried += may_have_retried(slot, count, time) ? count : slots_[slot].retried.load(std::memory_order_relaxed);
  }
  stats.handed_on = handed_on_.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < kExitReasons; ++i) stats.ended[i] = ended_[i].load(std::memory_order_relaxed);
  return stats;
}

std::vector<int> Supervisor::pids() const {
  std::vector<int> pids;
  for (unsigned slot = 0; slot < table_.shape().workers; ++slot)
    if (const int pid = slots_[slot].pid.load(std::memory_order_relaxed); pid != 0) pids.push_back(pid);
  return pids;
}

}  // namespace freehold::process
