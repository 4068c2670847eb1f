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
// whole fails, the connections close unanswered, and the job server hands the jobs on at once.
//
// A client whose server is lost gives the task to the next one, by the same unique id. Delivery is exactly once: a future
// gets the first answer, and the connections on which there could be another one are closed. Execution is at least once:
// a supervisor that gets an id which it runs or has lately run gives the first run's answer, but two machines do not know
// of each other.
//
// Threads: any, on the pool and the supervisor; a future or result belongs to one thread at a time.
// Cost: a thread and a connection for each task that the servers know of, both kept; and one of each for each worker slot.
// docs/process.md has the setup. Link freehold::process_gearman, which is there if libgearman was when Freehold was built.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "freehold/process/process_pool.hpp"

namespace freehold {

namespace process {

struct GearmanTask;

// How a task ended: process::Result, of a task whose output came over the network.
class GearmanResult {
 public:
  GearmanResult() noexcept = default;
  explicit GearmanResult(Failure failure) noexcept : failure_(failure) {}

  [[nodiscard]] bool ok() const noexcept { return task_ != nullptr && failure_.kind == FailureKind::kNone; }
  [[nodiscard]] Failure failure() const noexcept { return failure_; }
  // The output, as long as the result is there. Empty unless ok().
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::string_view text() const noexcept {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }

 private:
  friend class GearmanFuture;
  std::shared_ptr<const GearmanTask> task_;
  Failure failure_;
  std::span<const std::byte> bytes_;
};

// A task that was submitted: process::Future. Destroying it drops the task. None may outlive the pool.
class GearmanFuture {
 public:
  GearmanFuture() noexcept = default;
  explicit GearmanFuture(SubmitError error) noexcept : submit_error_(error) {}
  explicit GearmanFuture(std::shared_ptr<GearmanTask> task) noexcept : task_(std::move(task)) {}
  ~GearmanFuture() { cancel(); }
  GearmanFuture(GearmanFuture&& other) noexcept = default;
  GearmanFuture& operator=(GearmanFuture&& other) noexcept;

  [[nodiscard]] bool valid() const noexcept { return task_ != nullptr; }
  [[nodiscard]] SubmitError submit_error() const noexcept { return submit_error_; }
  // Waits until the task is over, or for so long. Returns whether it is over; without a task it is.
  bool wait_for(Nanoseconds time);
  void wait() { wait_for(kWaitForEver); }
  // Waits for the result and takes it; without a task it is a failure. !valid() afterwards.
  [[nodiscard]] GearmanResult get();
  // Drops the task: it does not begin if it has not (its connection is closed within 0.1 s, and the server forgets it); if
  // it runs, its output will be nobody's.
  void cancel();

 private:
  std::shared_ptr<GearmanTask> task_;
  SubmitError submit_error_ = SubmitError::kNone;
};

}  // namespace process

struct GearmanPoolOptions {
  std::vector<std::string> servers;   // "host:port", "host" (port 4730) or "[address]:port"
  std::string function = "freehold";  // the component's name among the servers' jobs
  unsigned connections = 64;    // tasks that the servers know of at a time; as many as all machines have slots, or more
  std::uint32_t entries = 256;  // tasks at a time, from submit() until their result is got
  std::uint64_t max_input = 1 << 20;  // bytes; no more than the supervisors' max_input
  process::Nanoseconds limit{0};      // a task may run for so long unless it says otherwise; 0: for ever
  process::Nanoseconds without_server{std::chrono::seconds(30)};  // then a task that no server accepts fails
  // While a task waits for its answer, a connection so often shows whether the server's host is there; 0: never.
  process::Nanoseconds host_check{std::chrono::seconds(5)};
};

struct GearmanPoolStats {
  process::ClientStats tasks;
  std::uint32_t waiting = 0, running = 0, entries = 0;  // not given to a server yet; given to one
  std::uint64_t resubmitted = 0;                        // to another server, after theirs was lost
};

class GearmanPool {
 public:
  explicit GearmanPool(const GearmanPoolOptions& options);
  // Pre: no future, result or caller of submit() is left.
  ~GearmanPool();
  GearmanPool(const GearmanPool&) = delete;
  GearmanPool& operator=(const GearmanPool&) = delete;

  // Whether the options make sense. A server that is not there may yet come: see without_server.
  [[nodiscard]] bool ok() const { return error_.empty(); }
  [[nodiscard]] const std::string& error() const { return error_; }

  // As ProcessPool's.
  [[nodiscard]] process::GearmanFuture submit(std::span<const std::byte> input) { return submit(input, defaults_); }
  [[nodiscard]] process::GearmanFuture submit(std::string_view input) { return submit(input, defaults_); }
  [[nodiscard]] process::GearmanFuture submit(std::span<const std::byte> input, const process::TaskOptions& options);
  [[nodiscard]] process::GearmanFuture submit(std::string_view input, const process::TaskOptions& options) {
    return submit(std::as_bytes(std::span(input)), options);
  }
  std::size_t submit_all(std::span<const std::span<const std::byte>> inputs, std::span<process::GearmanFuture> futures);
  [[nodiscard]] const process::TaskOptions& defaults() const noexcept { return defaults_; }
  [[nodiscard]] process::GearmanResult call(std::string_view input);

  [[nodiscard]] GearmanPoolStats stats() const;
  // One line for people.
  [[nodiscard]] std::string status() const;

  struct Dispatcher;

 private:
  std::string error_;
  process::TaskOptions defaults_;
  std::unique_ptr<Dispatcher> dispatcher_;  // null unless ok()
};

struct GearmanSupervisorOptions {
  std::vector<std::string> servers;   // as the clients'
  std::string function = "freehold";  // the same
  ProcessPoolOptions workers;         // max_workers is the number of slots; `limit` does not count, the client's does
  std::uint64_t kept_answers =
      16 << 20;  // bytes of the latest answers, in case that a client has not got one and asks again
};

struct GearmanSupervisorStats {
  ProcessPoolStats pool;
  std::uint64_t answered = 0;
  std::uint64_t repeated = 0;     // of these with another run's answer
  std::uint64_t handed_back = 0;  // left to the server to hand on
};

class GearmanSupervisor {
 public:
  explicit GearmanSupervisor(const GearmanSupervisorOptions& options);
  // Takes no more jobs; running ones have a second, then the servers hand them on.
  ~GearmanSupervisor();
  GearmanSupervisor(const GearmanSupervisor&) = delete;
  GearmanSupervisor& operator=(const GearmanSupervisor&) = delete;

  // Whether it takes jobs. Once its workers cannot be started it takes none, and has to be replaced.
  [[nodiscard]] bool ok() const { return error().empty(); }
  [[nodiscard]] std::string error() const;
  [[nodiscard]] GearmanSupervisorStats stats() const;
  [[nodiscard]] std::vector<int> worker_pids() const;

  struct Slots;

 private:
  std::string error_;
  std::unique_ptr<Slots> slots_;  // null if the options are wrong
};

}  // namespace freehold
