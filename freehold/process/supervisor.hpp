// Keeps as many worker processes as there is work for: starts one when a task finds none asleep, up to a cap; replaces one
// that died and hands its task on; kills one whose task has run out of time or memory; reaps all. Workers end by themselves
// when they are idle, old, large or tired (worker.hpp).
//
// One thread, which starts the workers and therefore has to live as long as they: they die with it, by PR_SET_PDEATHSIG,
// whatever ends it. Nothing of it lies outside of this process and the table, so after a kill -9 there is nothing to clean
// up; the next supervisor of the same table waits until the former one's workers are dead and hands on what they held.
//
// Workers are started by posix_spawn (vfork and exec), with the table, the wakeup eventfd and nothing else open, in a
// process group of their own so that a terminal's Ctrl-C is the client's business, with default signal dispositions.
//
// While tasks wait or run it looks at them every `tick`; an idle supervisor sleeps until it is told of a task. A task that
// still waits at the next look is announced again: the worker that was called for it may have been stopped.
//
// Damage: a component that writes wildly may write into the table. What cannot be is looked for at every tick, and said by
// clients that see it: then all workers are killed, the table is made anew, and every task that it held fails with kCorrupt.
//
// Storms: a worker that dies without a task, and without ever having ended one, is followed by the next one after 1 ms, 2
// ms, 4 ms … 1 s (the first two at once). While no worker lives and `start_failures` in a row did not even come up, for
// `start_timeout` if workers did before or the system is short of something, the table is broken: broken() says why, and all
// tasks that wait fail. The supervisor goes on trying, and the first worker that comes up mends it.
#pragma once
#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "freehold/process/confine.hpp"
#include "freehold/process/memory_groups.hpp"
#include "freehold/process/shared_memory.hpp"
#include "freehold/process/task_table.hpp"
#include "freehold/process/worker.hpp"

namespace freehold::process {

class Client;
struct PoolEvent;

struct SupervisorOptions {
  std::vector<std::string> command;  // of the worker program
  unsigned min_workers = 0;          // kept even when there is no work
  unsigned max_workers = 1;
  unsigned attempts = 3;                        // of one task, when its workers die
  unsigned start_failures = 5;                  // in a row, see above
  std::uint64_t start_timeout = 5'000'000'000;  // nanoseconds, see above
  std::uint64_t load_limit = 0;                 // nanoseconds: a worker that is not up by then is killed; 0: none
  WorkerLimits limits;
  Confinement confinement{};    // of the workers
  std::string memory_cgroup{};  // with kill_rss: a folder in which each worker gets a group of its own, memory_groups.hpp
  // Called by the supervisor's thread, and not for long. Without it damage alone is told, on standard error.
  std::function<void(const PoolEvent&)> log;
  // Workers' standard error goes through the supervisor, which passes it on and knows its last lines.
  bool keep_standard_error = false;
  Client* local_client = nullptr;             // of this process, in slot 0; outlives the supervisor
  std::uint64_t kill_rss = 0;                 // bytes: a worker above it is killed in the middle of its task; 0: none
  std::uint64_t tick = 10'000'000;            // nanoseconds between two looks at deadlines and memory
  std::uint64_t purge_delay = 1'000'000'000;  // nanoseconds for which an entry is free before its pages are given back
  std::uint64_t grace = 1'000'000'000;        // nanoseconds that a task may go on for when the pool ends
};

// Why workers ended.
enum class ExitReason : std::uint8_t {
  kSignal,
  kExit,  // by itself, but not as a worker does
  kDeadline,
  kMemory,
  kIdle,
  kMaxTasks,
  kMaxRss,
  kMaxAge,
  kClosed,
  kNeverUp,    // before it could take a task
  kCancelled,  // killed because its client wanted it so
};
inline constexpr std::size_t kExitReasons = 11;
[[nodiscard]] const char* text(ExitReason reason) noexcept;

// What happened, for a log.
struct PoolEvent {
  enum class Kind : std::uint8_t {
    kWorkerEnded,   // `end` says why
    kTaskHandedOn,  // its worker ended, and it goes to another one
    kTaskFailed,    // its worker ended, and that was its last attempt
    kTaskDropped,   // its worker ended, and nobody wants it any more
    kStartFailed,   // a worker did not come up: `text`
    kBroken,        // no worker can be started: `text`
    kDamaged,       // a component has written into the table: `text` says where
  };
  Kind kind = Kind::kWorkerEnded;
  int worker = 0;                                // process; 0: none
  ExitReason exit_reason = ExitReason::kSignal;  // of the worker
  Failure reason{};                              // of a task
  std::uint64_t task = 0;                        // Future::id()
  unsigned attempt = 0;                          // the first is 1
  std::string text{};
  std::string last_lines{};  // of the worker's standard error, if that is kept
};
// One line for people.
[[nodiscard]] std::string text(const PoolEvent& event);
[[nodiscard]] std::string text(Failure failure);

struct SupervisorStats {
  unsigned live = 0;
  std::uint64_t started = 0;
  std::uint64_t handed_on = 0;  // tasks whose worker died, and that went to another one
  std::uint64_t retried = 0;    // runs that a component refused, and after which its task runs again
  std::uint64_t damaged = 0;    // times that the table was made anew, because something had written into it
  std::array<std::uint64_t, kExitReasons> ended{};
};

class Supervisor {
 public:
  // Pre: `memory` is a valid table and outlives the supervisor; `wakeup_fd` is an eventfd that submitters notify.
  Supervisor(const SharedMemory& memory, int wakeup_fd, SupervisorOptions options);
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // Why it cannot begin; empty if it can.
  [[nodiscard]] std::string setup_error() const { return groups_ ? groups_->error() : ""; }
  // Starts the thread. Returns false and errno.
  bool start() noexcept;
  // Ends the workers and the thread. What still waits or runs after the grace period fails.
  void stop() noexcept;
  // The same without a thread: supervises in this one until stop() is called by another.
  void run();

  // Lets the process at the other end of a connected Unix socket be a client, by AttachedClient (client.hpp), until it
  // closes the socket or dies; then its tasks are dropped. Takes the socket over. A process of another user is refused, and
  // so is one for which no slot is left: the socket is closed. Any thread.
  void serve(int socket);

  // Any thread.
  [[nodiscard]] SupervisorStats stats() const noexcept;
  // Why no worker can be started at the moment; empty while all is well.
  [[nodiscard]] std::string broken() const;
  [[nodiscard]] bool is_broken() const noexcept { return broken_.load(std::memory_order_acquire); }
  // The processes of the live workers.
  [[nodiscard]] std::vector<int> pids() const;

 private:
  struct Slot {
    std::atomic<int> pid{0};  // 0: no worker; written by the supervisor's thread
    int pidfd = -1;
    std::uint64_t ended_before = 0;  // the table's count when it was started
    Failure kill_reason;             // why we killed it, if we did
    bool cancelled = false;          // because the client wanted it so
    std::uint64_t born = 0;          // the time
    int standard_error = -1;         // the reading end of its pipe
    std::string last_lines;          // that came from there
    // Its task that was seen beyond its limit, and when; how long the worker had waited for a CPU until then.
    TaskWord overdue;
    std::uint32_t overdue_entry = 0;
    std::uint64_t overdue_since = 0, overdue_cpu_wait = 0;
  };
  // How a worker's process ended.
  struct EndedWorker {
    int pid, status;
    ExitReason exit_reason;
    bool exited, was_up;
    bool held;        // a task
    bool ended_some;  // tasks, before
  };
  // What a look found in an entry, and since when it stands so.
  struct Observation {
    TaskWord word;
    std::uint64_t since = 0;
    bool helped = false;                              // its client was woken once more
    std::uint32_t clean_generation = 0;               // as which it was purged last, or has never been used
    std::uint32_t deaths_generation = 0, deaths = 0;  // workers that its task has cost
  };

  static void* thread_main(void* supervisor);
  void take_over() noexcept;
  void start_workers(std::uint64_t time);
  void spawn(unsigned slot);
  [[nodiscard]] int start_process(unsigned slot, pid_t& pid, int& error_end);
  void note_start_failure(const std::string& why, bool transient);
  void note_ready_workers() noexcept;
  [[nodiscard]] bool may_still_start(std::uint64_t time) const noexcept;
  void kill_overdue(std::uint64_t time) noexcept;
  [[nodiscard]] bool has_had_cpu_time(const Claim& claim, std::uint64_t time, std::uint64_t beyond) noexcept;
  [[nodiscard]] std::uint64_t unchanged_since(std::uint32_t entry, TaskWord word, std::uint64_t time) noexcept;
  void help_stuck_tasks(std::uint64_t time) noexcept;
  void look_for_damage(std::uint64_t time);
  [[nodiscard]] std::uint64_t purge(std::uint64_t time);
  void reset_table(const char* why);
  void wait_until_dead(std::uint64_t until);
  void kill_large(std::uint64_t time) noexcept;
  void kill_hung_starts(std::uint64_t time) noexcept;
  void kill(unsigned slot) noexcept;
  [[nodiscard]] bool may_sleep(std::uint64_t time) noexcept;
  void wait(std::uint64_t time);
  void reap_all() noexcept;
  void reap(unsigned slot) noexcept;
  void note_end(const Slot& worker, const EndedWorker& ended);
  void recover(unsigned slot, int pid, ExitReason exit_reason, Failure reason);
  void pass_standard_error_on(Slot& slot) noexcept;
  void report(PoolEvent event);
  void retry_later() noexcept;
  void shut_down();
  void accept_clients();
  void remove_client(unsigned slot) noexcept;
  [[nodiscard]] unsigned live() const noexcept;
  [[nodiscard]] unsigned starting() const noexcept;

  const SharedMemory& memory_;
  Table table_;
  const int wakeup_fd_;
  const SupervisorOptions options_;
  std::unique_ptr<Slot[]> slots_;
  std::unique_ptr<MemoryGroups> groups_;  // null: we look at resident memory ourselves
  std::vector<Observation> observed_;     // the supervisor's thread only
  pthread_t thread_{};
  bool has_thread_ = false;
  int owner_ = 0;  // the process that has it
  std::atomic<bool> stopping_{false};

  // Sockets that serve() has brought.
  std::mutex pending_clients_lock_;
  std::vector<int> pending_clients_;

  // The supervisor's thread only.
  std::vector<int> sockets_;  // of the client in each slot; -1: free. Slot 0 is this process's own
  std::uint32_t epoch_ = 0;
  unsigned unproductive_ = 0;          // workers in a row that ended no task, nor died of one
  unsigned max_starting_ = 1;          // workers that may be coming up together
  std::uint64_t doubled_at_ = 0;       // when that was doubled
  unsigned start_failures_ = 0;        // in a row
  std::uint64_t failing_since_ = 0;    // the first of them
  bool failure_is_transient_ = false;  // one of them was of a kind that passes
  bool was_up_ = false;                // a worker, ever
  std::uint64_t not_before_ = 0;       // the time of the next start
  std::uint64_t last_look_at_memory_ = 0;
  bool task_revoked_ = false;  // a worker has found its task changed
  std::uint64_t ended_in_all_ = 0, no_sleep_before_ = 0;

  // Written by the supervisor's thread, read by any.
  std::atomic<std::uint64_t> started_{0}, handed_on_{0}, damaged_{0};
  std::array<std::atomic<std::uint64_t>, kExitReasons> ended_{};
  std::atomic<bool> broken_{false};
  mutable std::mutex broken_reason_lock_;
  std::string broken_reason_;
};

}  // namespace freehold::process
