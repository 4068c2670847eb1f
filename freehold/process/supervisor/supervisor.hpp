// SPDX-License-Identifier: MIT
// The supervisor keeps as many worker processes as there is work for. It starts one when a task finds none asleep, up to a
// limit; it replaces one that died and gives its task to another; it kills one whose task has run out of time or memory; and
// it reaps all. Workers end by themselves when they are idle, or when they reach a limit of age, tasks or memory
// (worker.hpp).
//
// It has one thread, which starts the workers and must live as long as they do: they die with it, by PR_SET_PDEATHSIG,
// whatever ends it. The supervisor has no state outside of this process and the table, so after a kill -9 there is nothing
// to clean up: the next supervisor of the same table waits until the former one's workers are dead, and gives their tasks to
// its own.
//
//   supervisor.cpp          the loop, and the end
//   supervisor_workers.cpp  workers start and end
//   supervisor_checks.cpp   deadlines, memory, stuck tasks, damage, pages to give back
//   worker_starts.hpp       when the next worker starts, and whether the table is broken
//   entry_watch.hpp         since when an entry is in its state
//   served_clients.hpp      other processes that use the pool
//
// Workers are started by posix_spawn (vfork and exec), with the table, the wakeup eventfd and nothing else open, with
// default signal dispositions, and in a process group of their own, so that Ctrl-C of a terminal reaches the client only.
//
// While tasks wait or run, the supervisor checks them every kTick; with no task it sleeps until it is notified of one. A
// task that still waits at the next check is published again: the worker that was woken for it may have been stopped.
//
// Damage: a component that writes wildly may write into the table. The supervisor checks for impossible values at every
// tick, and clients report those that they see. Then all workers are killed, the table is emptied, and every task in it
// fails with kCorrupt.
#pragma once
#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "freehold/process/process_pool.hpp"
#include "freehold/process/supervisor/entry_watch.hpp"
#include "freehold/process/supervisor/memory_groups.hpp"
#include "freehold/process/supervisor/served_clients.hpp"
#include "freehold/process/supervisor/worker_starts.hpp"
#include "freehold/process/table/shared_memory.hpp"
#include "freehold/process/table/table_supervision.hpp"
#include "freehold/process/worker/worker_protocol.hpp"

namespace freehold::process {

class Supervisor {
 public:
  // Pre: `memory` is a valid table and outlives the supervisor; `wakeup_fd` is an eventfd that clients notify; the options'
  // command, max_workers and max_attempts are set. `local_client`: of this process, in slot 0; outlives the supervisor.
  Supervisor(const SharedMemory& memory, int wakeup_fd, ProcessPoolOptions options, Client* local_client = nullptr);
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // Why it cannot start; empty if it can.
  [[nodiscard]] std::string setup_error() const { return groups_ ? groups_->error() : ""; }
  // Starts the thread. Returns false and errno.
  bool start() noexcept;
  // Starts a worker if none has come up yet, and waits until one has, or until none can be started. Any thread.
  void wait_for_worker() noexcept;
  // Ends the workers and the thread. Tasks that still wait or run after the grace period fail.
  void stop() noexcept;
  // The same without a thread: supervises in this one until stop() is called by another.
  void run();

  // Makes the process at the other end of a connected Unix socket a client, by AttachedClient, until it closes the socket or
  // dies; then its tasks are dropped. Takes the socket over. It is closed at once if the process belongs to another user, or
  // if no slot is left. Any thread.
  void serve(int socket);

  // Any thread.
  [[nodiscard]] SupervisorStats stats() const noexcept;
  // Why no worker can be started at the moment; empty while all is well.
  [[nodiscard]] std::string broken() const { return starts_.reason(); }
  [[nodiscard]] bool is_broken() const noexcept { return starts_.is_broken(); }
  // The processes of the live workers.
  [[nodiscard]] std::vector<int> pids() const;

 private:
  // A worker, or room for one.
  struct Slot {
    std::atomic<int> pid{0};  // 0: no worker; written by the supervisor's thread
    int pidfd = -1;
    std::uint64_t ended_before = 0;         // the table's count when it was started
    Failure kill_reason;                    // why the supervisor killed it; kNone: it did not
    bool cancelled = false;                 // it was killed because a client asked for it
    std::uint64_t born = 0;                 // the time
    int standard_error = -1;                // the reading end of its pipe
    std::string last_lines;                 // that came from there
    std::atomic<std::uint64_t> retried{0};  // the table's count at the last check, where that was possible
    // Its task that was seen beyond its limit, and when; how long the worker had waited for a CPU until then.
    TaskWord overdue;
    std::uint32_t overdue_entry = 0;
    std::uint64_t overdue_since = 0, overdue_cpu_wait = 0;
  };
  // Nanoseconds between two checks of deadlines and memory; for which an entry is free before its pages are given back; that
  // a task may go on for when the pool ends.
  static constexpr std::uint64_t kTick = 10'000'000, kPurgeDelay = 1'000'000'000, kGrace = 1'000'000'000;

  // How a worker's process ended.
  struct EndedWorker {
    int pid, status;
    ExitReason exit_reason;
    bool exited, was_up;
    bool held;        // a task
    bool ended_some;  // tasks, before
  };

  // supervisor.cpp
  static void* thread_main(void* supervisor);
  void take_over() noexcept;
  void wait(std::uint64_t time);
  [[nodiscard]] bool may_sleep(std::uint64_t time) noexcept;
  void shut_down();
  void wait_until_dead(std::uint64_t kill_at);
  void report(const PoolEvent& event);

  // supervisor_workers.cpp
  [[nodiscard]] unsigned live() const noexcept;
  [[nodiscard]] unsigned starting() const noexcept;
  void start_workers(std::uint64_t time);
  void spawn(unsigned slot);
  [[nodiscard]] int start_process(unsigned slot, pid_t& pid, int& error_end);
  void watch(unsigned slot, pid_t pid, int standard_error);
  void note_start_failure(const std::string& why, bool transient);
  void note_ready_workers() noexcept;
  void kill(unsigned slot) noexcept;
  void reap_all() noexcept;
  void reap(unsigned slot) noexcept;
  [[nodiscard]] bool has_ended(unsigned slot, EndedWorker& ended) noexcept;
  [[nodiscard]] Failure reason_of(unsigned slot, EndedWorker& ended) noexcept;
  void note_end(const Slot& worker, const EndedWorker& ended);
  void recover(unsigned slot, int pid, ExitReason exit_reason, Failure reason);
  void pass_standard_error_on(Slot& slot) noexcept;

  // supervisor_checks.cpp
  void kill_overdue(std::uint64_t time) noexcept;
  void kill_large(std::uint64_t time) noexcept;
  void kill_hung_starts(std::uint64_t time) noexcept;
  [[nodiscard]] bool has_had_cpu_time(const Claim& claim, std::uint64_t time, std::uint64_t beyond) noexcept;
  void help_stuck_tasks(std::uint64_t time) noexcept;
  [[nodiscard]] bool may_have_retried(unsigned slot, std::uint64_t count, std::uint64_t time) const noexcept;
  [[nodiscard]] bool note_retried(std::uint64_t time) noexcept;
  void look_for_damage(std::uint64_t time);
  void reset_table(const char* damaged);
  [[nodiscard]] std::uint64_t purge(std::uint64_t time);

  const SharedMemory& memory_;
  Table table_;
  TableSupervision<sync::NativeAtomics> supervision_{table_};
  const int wakeup_fd_;
  std::vector<int> inherited_;  // copies of the options' descriptors
  const ProcessPoolOptions options_;
  Client* const local_client_;
  std::unique_ptr<Slot[]> slots_;
  std::unique_ptr<MemoryGroups> groups_;  // null: the supervisor checks resident memory itself
  ServedClients clients_;
  WorkerStarts starts_;
  pthread_t thread_{};
  bool has_thread_ = false;
  int owner_ = 0;  // the process that has it
  std::atomic<bool> stopping_{false};

  // The supervisor's thread only.
  EntryWatch watch_;
  std::uint32_t epoch_ = 0;
  std::uint64_t last_memory_check_ = 0;
  bool task_revoked_ = false;  // a worker has found its task changed, and not by the supervisor
  std::uint64_t ended_in_all_ = 0, no_sleep_before_ = 0;

  // Written by the supervisor's thread, read by any.
  std::atomic<std::uint64_t> started_{0}, handed_on_{0}, damaged_{0}, retried_seen_at_{0};
  std::array<std::atomic<std::uint64_t>, kExitReasons> ended_{};
};

}  // namespace freehold::process
