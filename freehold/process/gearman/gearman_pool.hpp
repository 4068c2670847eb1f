// SPDX-License-Identifier: MIT
// The process pool beyond one machine: the same tasks, futures and reasons over Gearman job servers.
//
//   freehold::GearmanPool pool({.servers = {"one:4730", "two:4730"}});            // where the clients are
//   auto result = pool.call("some input");
//
//   freehold::GearmanSupervisor machine({.servers = {"one:4730", "two:4730"},     // on every machine that works
//                                        .workers = {.component = "./slow.so", .max_workers = 8}});
//
// A GearmanSupervisor is a ProcessPool whose tasks come from the job servers: one connection per worker slot takes one job
// at a time and gives it to the pool, whose rules hold for it: attempts, deadline, memory, replaced workers. So the answer
// carries the reason of a failure, which Gearman's own retries would lose. If the machine, the supervisor or the pool as a
// whole fails, the connections close unanswered, and the job server gives the jobs to other machines at once.
//
// A client whose server is lost gives the task to the next one, by the same unique id. Delivery is exactly once: a future
// gets the first answer, and the connections on which another one could come are closed. Execution is at least once: a
// supervisor that gets an id which it runs or has lately run returns the first run's answer, but two machines do not know of
// each other.
//
// Threads: any, on the pool and the supervisor; a future or result belongs to one thread at a time.
// Cost: a thread and a connection for each task that the servers know of, both kept; and one of each for each worker slot.
// docs/process-gearman.md has the setup. Link freehold::process_gearman, which needs libgearman (FREEHOLD_BUILD_GEARMAN).
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "freehold/process/process_pool.hpp"

namespace freehold {

namespace process {

struct GearmanTask;

/// A submitted task, as process::Future. Destroying it drops the task. It must not outlive the pool.
class GearmanFuture {
 public:
  GearmanFuture() noexcept = default;
  /// A future without a task.
  /// @param error  why no task was submitted
  explicit GearmanFuture(FailureKind error) noexcept : error_{error} {}
  /// For the pool itself.
  /// @param task  the task
  explicit GearmanFuture(std::shared_ptr<GearmanTask> task) noexcept : task_(std::move(task)) {}
  ~GearmanFuture() { cancel(); }
  GearmanFuture(GearmanFuture&& other) noexcept = default;
  GearmanFuture& operator=(GearmanFuture&& other) noexcept;

  /// @return whether there is a task whose result has not been taken yet.
  [[nodiscard]] bool valid() const noexcept { return task_ != nullptr; }
  /// @return why submit() made no task; kNone if it made one.
  [[nodiscard]] Failure error() const noexcept { return error_; }
  /// Waits until the task is over.
  /// @param timeout  at most so long; nullopt: no limit
  /// @return whether it is over; true without a task.
  bool wait_for(std::optional<Nanoseconds> timeout);
  /// Waits until the task is over.
  void wait() { wait_for(std::nullopt); }
  /// Waits for the result and takes it; !valid() afterwards.
  /// @return the result; without a task error(), or kNoTask.
  [[nodiscard]] Result get();
  /// Drops the task. A waiting task never starts: its connection is closed within 0.1 s, and the server forgets it. The
  /// output of a running one is discarded.
  void cancel();

 private:
  std::shared_ptr<GearmanTask> task_;
  Failure error_;
};

}  // namespace process

/// How clients reach the machines.
struct GearmanPoolOptions {
  std::vector<std::string> servers;   ///< "host:port", "host" (port 4730) or "[address]:port"
  std::string function = "freehold";  ///< the component's name among the servers' jobs
  /// Tasks that the servers know of at a time; at least as many as all machines have slots.
  unsigned max_connections = 64;
  std::uint32_t max_open_tasks = 256;                 ///< tasks at a time, from submit() until their result is got
  std::uint64_t max_input_bytes = 1 << 20;            ///< at most the supervisors' max_input_bytes
  std::optional<process::Nanoseconds> run_timeout{};  ///< time limit of one run, unless the task has its own; nullopt: none
  process::Nanoseconds server_timeout{std::chrono::seconds(30)};  ///< then a task that no server accepts fails
  /// While a task waits for its answer: how often a connection checks whether the server's host is there; 0: never.
  process::Nanoseconds host_check_interval{std::chrono::seconds(5)};
};

/// The figures of one pool.
struct GearmanPoolStats {
  process::ClientStats tasks;        ///< of this pool
  std::uint32_t waiting = 0;         ///< tasks that no server has yet
  std::uint32_t running = 0;         ///< tasks that a server has
  std::uint32_t max_open_tasks = 0;  ///< tasks that there is room for
  std::uint64_t resubmitted = 0;     ///< tasks that went to another server because theirs was lost
};

/// @param stats  the figures
/// @return one line for people.
[[nodiscard]] std::string text(const GearmanPoolStats& stats);

/// Runs tasks on the machines behind some Gearman job servers.
class GearmanPool {
 public:
  /// @param options  servers, and limits
  /// Errors: !ok(), error() says why.
  explicit GearmanPool(const GearmanPoolOptions& options);
  /// Pre: no future, result or caller of submit() is left.
  ~GearmanPool();
  GearmanPool(const GearmanPool&) = delete;
  GearmanPool& operator=(const GearmanPool&) = delete;

  /// @return whether the options make sense. A server that is not there may still come, see server_timeout.
  [[nodiscard]] bool ok() const { return error_.empty(); }
  /// @return what is wrong with the options, in one line; empty if ok().
  [[nodiscard]] const std::string& error() const { return error_; }

  /// Submits a task.
  /// @param input    text or bytes; copied
  /// @param options  of this task; only `run_timeout` and `submit_timeout` count
  /// @return the task. Errors: a future that is not valid(); its error() says why.
  [[nodiscard]] process::GearmanFuture submit(process::Input input, const process::TaskOptions& options = {});
  /// Submits a task and waits for its result.
  /// @param input    text or bytes; copied
  /// @param options  as of submit()
  /// @return the result, or why the task was not accepted.
  [[nodiscard]] process::Result call(process::Input input, const process::TaskOptions& options = {}) {
    return submit(input, options).get();
  }

  /// @return the figures of this pool.
  [[nodiscard]] GearmanPoolStats stats() const;

  struct Dispatcher;  // the threads that carry the tasks

 private:
  std::string error_;
  std::unique_ptr<Dispatcher> dispatcher_;  // null unless ok()
};

/// How a machine works for the job servers.
struct GearmanSupervisorOptions {
  std::vector<std::string> servers;   ///< as GearmanPoolOptions::servers
  std::string function = "freehold";  ///< as GearmanPoolOptions::function
  /// The machine's pool: max_workers is the number of slots; `run_timeout` is ignored, since each task brings its client's.
  ProcessPoolOptions workers;
  /// Bytes of the latest answers, for a client that did not get one and asks again.
  std::uint64_t max_kept_bytes = 16 << 20;
};

/// The figures of one machine.
struct GearmanSupervisorStats {
  ProcessPoolStats pool;          ///< of its workers
  std::uint64_t answered = 0;     ///< tasks
  std::uint64_t repeated = 0;     ///< of these with the answer of an earlier run
  std::uint64_t handed_back = 0;  ///< tasks that were left to the server for another machine
};

/// A machine that works for Gearman job servers.
class GearmanSupervisor {
 public:
  /// Starts to take jobs.
  /// @param options  servers and workers
  /// Errors: !ok(), error() says why.
  explicit GearmanSupervisor(const GearmanSupervisorOptions& options);
  /// Takes no more jobs. Running ones get one more second, then the servers give them to other machines.
  ~GearmanSupervisor();
  GearmanSupervisor(const GearmanSupervisor&) = delete;
  GearmanSupervisor& operator=(const GearmanSupervisor&) = delete;

  /// @return whether it takes jobs. Once its workers cannot be started it takes none, and must be replaced.
  [[nodiscard]] bool ok() const { return error().empty(); }
  /// @return why it takes none, in one line; empty if ok().
  [[nodiscard]] std::string error() const;
  /// @return the figures of this machine.
  [[nodiscard]] GearmanSupervisorStats stats() const;
  /// @return the processes of the live workers.
  [[nodiscard]] std::vector<int> worker_pids() const;

  struct Slots;  // a thread and its connections for each worker

 private:
  std::string error_;
  std::unique_ptr<Slots> slots_;  // null if the options are wrong
};

}  // namespace freehold
