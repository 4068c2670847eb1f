// A pool of worker processes behind a shared-memory table: a component that cannot be changed and does not scale, or
// crashes, runs in processes of its own, and threads call it as if it were a function.
//
//   freehold::ProcessPool pool({.component = "./slow.so"});
//   if (!pool.ok()) fail(pool.error());
//   freehold::process::Future future = pool.submit("some input");
//   freehold::process::Result result = future.get();      // or pool.call("some input")
//   if (result.ok()) use(result.text());
//
// docs/process.md says what happens when something fails. Threads: any. The pool's thread is its supervisor
// (supervisor.hpp); the workers die with this process, whatever ends it.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "freehold/process/client.hpp"
#include "freehold/process/shared_memory.hpp"
#include "freehold/process/supervisor.hpp"

namespace freehold {

struct ProcessPoolOptions {
  std::string component{};             // a shared object that exports freehold_run (component.h), or
  std::vector<std::string> command{};  // a worker program of one's own (worker.hpp) and its arguments
  std::string worker_program{};        // loads the component; default: freehold-worker, see find_worker_program()
  unsigned max_workers = 0;            // 0: two for each CPU that this process may use (affinity and cgroup)
  unsigned min_workers = 0;            // kept even when there is no work
  std::uint32_t entries = 256;         // tasks at a time, waiting and running
  std::uint64_t max_input = 1 << 20, max_output = 1 << 20;  // bytes of one task; what is not used costs nothing
  unsigned client_processes = 63;                           // others that may attach, see serve()
  unsigned attempts = 3;                                    // of a task whose workers die
  process::Nanoseconds limit{0};  // a task may run for so long unless it says otherwise; 0: for ever
  process::RetryOptions retry{};  // of a task that its component refuses, unless it says otherwise
  process::Nanoseconds load_limit{std::chrono::seconds(60)};  // a worker that has not loaded by then is killed; 0: never
  process::Nanoseconds idle{std::chrono::seconds(10)};        // a worker without a task ends after so long; 0: never
  process::Nanoseconds max_age{0};                            // a worker ends after so long, between two tasks
  std::uint64_t max_tasks = 0;                                // or after so many tasks
  std::uint64_t max_rss = 0;                                  // or when it holds so many bytes
  std::uint64_t kill_rss = 0;                                 // in the middle of a task, when it holds so many bytes
  // With kill_rss: a memory cgroup that this user may make others in, so that the kernel holds worker and children to the
  // limit (and task's room); else the pool looks at its workers' memory 100 times a second.
  std::string memory_cgroup{};
  process::Confinement confinement{};  // what workers may do
  // Called by the pool's thread for what happens to workers and their tasks; without it damage alone is told, on standard
  // error.
  std::function<void(const process::PoolEvent&)> log{};
  bool keep_standard_error = false;  // workers' standard error goes through the pool, and its last lines into the log
};

struct ProcessPoolStats {
  process::ClientStats tasks;
  process::SupervisorStats workers;
  std::uint32_t waiting = 0, running = 0, entries = 0;  // of the table
};

// "waiting 3, running 4 of 256; 4 workers; 1200 done, 2 failed; median 34 us …": one line for people.
[[nodiscard]] std::string text(const ProcessPoolStats& stats);
// The same for programs: one JSON object, or Prometheus' text format with each name after `prefix`.
[[nodiscard]] std::string json_text(const ProcessPoolStats& stats);
[[nodiscard]] std::string prometheus_text(const ProcessPoolStats& stats, const std::string& prefix = "freehold_pool");

class ProcessPool {
 public:
  explicit ProcessPool(const ProcessPoolOptions& options);
  // Fails what still waits; running tasks have a second. Pre: no future, result or caller of submit() is left.
  ~ProcessPool();
  ProcessPool(const ProcessPool&) = delete;
  ProcessPool& operator=(const ProcessPool&) = delete;

  // Whether it was set up and workers can be started, as far as is known at the moment.
  [[nodiscard]] bool ok() const { return error().empty(); }
  [[nodiscard]] std::string error() const;

  [[nodiscard]] process::Future submit(std::span<const std::byte> input) { return submit(input, defaults_); }
  [[nodiscard]] process::Future submit(std::string_view input) { return submit(input, defaults_); }
  [[nodiscard]] process::Future submit(std::span<const std::byte> input, const process::TaskOptions& options);
  [[nodiscard]] process::Future submit(std::string_view input, const process::TaskOptions& options) {
    return submit(std::as_bytes(std::span(input)), options);
  }
  // For coroutines: Result result = co_await pool.run(input).
  [[nodiscard]] process::Awaited run(std::string_view input) { return process::Awaited(submit(input)); }
  [[nodiscard]] process::Awaited run(std::span<const std::byte> input, const process::TaskOptions& options) {
    return process::Awaited(submit(input, options));
  }
  // Each of the inputs, until one is refused. Returns how many were submitted. Pre: as many futures as inputs.
  std::size_t submit_all(std::span<const std::span<const std::byte>> inputs, std::span<process::Future> futures);
  // What submit() without options uses.
  [[nodiscard]] const process::TaskOptions& defaults() const noexcept { return defaults_; }
  // Takes a place whose input the caller writes itself: pool.draft().room(), then submit(bytes).
  [[nodiscard]] process::Draft draft() { return draft(defaults_); }
  [[nodiscard]] process::Draft draft(const process::TaskOptions& options);
  // Refuses tasks from now on, and waits until those that were accepted are over, or for so long. Returns whether they are.
  bool drain(process::Nanoseconds time);
  // Submits and waits. A refused task is a failure kNoWorker.
  [[nodiscard]] process::Result call(std::string_view input);

  // For a pool with a name: NamedSocket (named_socket.hpp) has the sockets.
  // Lets the process at the other end of a connected Unix socket use this pool, by process::AttachedClient, until it closes
  // the socket or dies. Takes the socket over. Processes of other users are refused.
  void serve(int socket);

  [[nodiscard]] ProcessPoolStats stats() const;
  // text(stats()).
  [[nodiscard]] std::string status() const;
  [[nodiscard]] std::vector<int> worker_pids() const;

 private:
  [[nodiscard]] bool accepts() const noexcept;

  std::string setup_error_;
  std::atomic<bool> draining_{false};
  process::TaskOptions defaults_;
  process::SharedMemory memory_;
  int wakeup_fd_ = -1;
  std::unique_ptr<process::Client> client_;
  std::unique_ptr<process::Supervisor> supervisor_;
};

// The worker program for components: $FREEHOLD_WORKER_PROGRAM, or freehold-worker beside this program or this library, in
// ../libexec/freehold or ../bin from there, or wherever $PATH finds it.
[[nodiscard]] std::string find_worker_program();

}  // namespace freehold
