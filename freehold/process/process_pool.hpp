// SPDX-License-Identifier: MIT
// ProcessPool runs a component that cannot be changed, and that crashes or does not scale, in supervised worker processes.
// Threads call it as if it were a function:
//
//   freehold::ProcessPool pool({.component = "./slow.so"});
//   if (!pool.ok()) fail(pool.error());
//   freehold::process::Future future = pool.submit("some input");
//   freehold::process::Result result = future.get();      // or pool.call("some input")
//   if (result.ok()) use(result.text());
//
// Tasks go through a table in shared memory (task_table.hpp). One thread of the pool supervises the workers
// (supervisor.hpp), which are killed with this process, whatever ends it. docs/process.md has a table of everything
// that can fail.
//
// Threads: any. Cost: submit to result about 10 us and no system call, while workers are awake.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "freehold/process/client/future.hpp"
#include "freehold/process/supervisor/pool_events.hpp"
#include "freehold/process/supervisor/pool_stats.hpp"
#include "freehold/process/worker/confinement.hpp"

namespace freehold {

namespace process {
class Client;
class SharedMemory;
class Supervisor;
/// @return this header, as the caller's compiler found it. The installed one tells where freehold-worker is installed.
[[nodiscard]] inline const char* header_file() { return std::source_location::current().file_name(); }
}  // namespace process

/// How a pool runs its workers. Either `component` or `command` is needed; everything else has a default. A limit that
/// is nullopt is none.
struct ProcessPoolOptions {
  std::string component{};                   ///< a shared object that exports freehold_run (component.h)
  std::vector<std::string> command{};        ///< or a worker program (process::Worker) and its arguments
  std::string worker_program{};              ///< loads the component; default: see find_worker_program()
  unsigned max_workers = 0;                  ///< 0: two for each CPU that this process may use (affinity and cgroup)
  unsigned min_workers = 0;                  ///< kept even when there is no work
  std::uint32_t max_open_tasks = 256;        ///< tasks at a time, waiting and running
  std::uint64_t max_input_bytes = 1 << 20;   ///< bytes of one input; pages that are never used cost nothing
  std::uint64_t max_output_bytes = 1 << 20;  ///< bytes of one output; likewise
  unsigned max_clients = 63;                 ///< other processes that may attach, see ProcessPool::serve()
  unsigned max_attempts = 3;                 ///< runs of a task whose workers die
  std::optional<process::Nanoseconds> run_timeout{};  ///< time limit of one run, unless the task has its own
  process::RetryOptions retry{};                      ///< for tasks that the component rejects, unless the task has its own
  /// A worker that has not started by then is killed.
  std::optional<process::Nanoseconds> load_timeout{std::chrono::seconds(60)};
  /// A worker without a task ends after so long.
  std::optional<process::Nanoseconds> idle_timeout{std::chrono::seconds(10)};
  std::optional<process::Nanoseconds> max_age{};  ///< a worker ends after so long, between two tasks
  std::optional<std::uint64_t> max_tasks{};       ///< a worker ends after so many tasks
  std::optional<std::uint64_t> max_rss_bytes{};   ///< a worker ends between two tasks when it holds so many bytes
  std::optional<std::uint64_t> kill_rss_bytes{};  ///< a worker is killed, even in a task, when it holds so many bytes
  /// With kill_rss_bytes: a memory cgroup in which this user may make others. The kernel then holds each worker and its
  /// children to the limit plus the room of one task. Without it, the pool checks its workers' memory 100 times a second.
  std::string memory_cgroup{};
  process::Confinement confinement{};  ///< what workers may do
  /// Called by the pool's thread for every event; must return soon. Without it only damage is reported, on standard error.
  std::function<void(const process::PoolEvent&)> log{};
  bool keep_standard_error = false;  ///< workers' standard error goes through the pool; its last lines go to the log
  bool keep_standard_input = false;  ///< workers read this process's standard input; otherwise they see its end at once
  /// Descriptors that a worker has, too, as 5, 6 and so on: at most 5, such as a memory file with what workers start with,
  /// which no list of processes shows. The pool copies them.
  std::vector<int> inherited{};
};

/// Runs tasks in supervised worker processes.
class ProcessPool {
 public:
  /// Creates the shared memory and starts the supervisor; workers start with the first tasks.
  /// @param options  how workers are run
  /// Errors: !ok(), error() says why.
  explicit ProcessPool(const ProcessPoolOptions& options) : ProcessPool(options, process::header_file()) {}
  /// Fails the waiting tasks; running ones get one more second. Pre: no future, result or caller of submit() is left.
  ~ProcessPool();
  ProcessPool(const ProcessPool&) = delete;
  ProcessPool& operator=(const ProcessPool&) = delete;

  /// Waits until a worker has answered, which it starts if none was started yet, or until it is known that none can.
  /// @return whether one has, and workers can still be started. Cost: the start of a worker, the first time; load_timeout
  /// at most for one that does not answer. In the callback `log`, and in a child of fork, it does not wait.
  [[nodiscard]] bool ok() const;
  /// @return why not, in one line; empty as far as nothing is known against it. Does not wait.
  [[nodiscard]] std::string error() const;

  /// Submits a task.
  /// @param input    text or bytes; copied into the table
  /// @param options  of this task; what it leaves out is the pool's
  /// @return the task. Errors: a future that is not valid(); its error() says why.
  [[nodiscard]] process::Future submit(process::Input input, const process::TaskOptions& options = {});
  /// Submits a task and waits for its result.
  /// @param input    text or bytes; copied into the table
  /// @param options  as of submit()
  /// @return the result, or why the task was not accepted.
  [[nodiscard]] process::Result call(process::Input input, const process::TaskOptions& options = {}) {
    return submit(input, options).get();
  }
  /// Submits a task for a coroutine: Result result = co_await pool.run(input).
  /// @param input    text or bytes; copied into the table
  /// @param options  as of submit()
  /// @return what the coroutine awaits.
  [[nodiscard]] process::Awaited run(process::Input input, const process::TaskOptions& options = {}) {
    return process::Awaited(submit(input, options));
  }
  /// Refuses tasks from now on, and waits until the accepted ones are over.
  /// @param timeout  at most so long; nullopt: no limit
  /// @return whether they are over.
  bool drain(std::optional<process::Nanoseconds> timeout);

  /// Lets another process use this pool, by process::AttachedClient, until it closes its socket or dies. Processes of other
  /// users are refused. For a pool with a name, process::NamedSocket makes the sockets.
  /// @param socket  a connected Unix socket, taken over
  void serve(int socket);

  /// @return the figures of this pool.
  [[nodiscard]] ProcessPoolStats stats() const;
  /// @return the processes of the live workers.
  [[nodiscard]] std::vector<int> worker_pids() const;

 private:
  ProcessPool(const ProcessPoolOptions& given, const char* header);
  [[nodiscard]] bool accepts() const noexcept;

  std::string setup_error_;
  std::atomic<bool> draining_{false};
  std::optional<process::Nanoseconds> run_timeout_;
  process::RetryOptions retry_;
  std::unique_ptr<process::SharedMemory> memory_;
  int wakeup_fd_ = -1;
  std::unique_ptr<process::Client> client_;
  std::unique_ptr<process::Supervisor> supervisor_;
};

/// @param header  of the installation to look in, beside the places of this program and library
/// @return the worker program for components: $FREEHOLD_WORKER_PROGRAM; or freehold-worker beside this program or library,
/// or in ../libexec/freehold or ../bin from there; or that of the installation whose header the caller was compiled with, or
/// of the prefix that this library was configured for; or the name alone, which $PATH resolves.
[[nodiscard]] std::string find_worker_program(const char* header = process::header_file());

}  // namespace freehold
