// A client of a task table: any thread puts tasks in and gets their results out. Input is copied in once, output is read
// where the worker has written it (or copied out once).
//
// A task is not lost and its result is not delivered twice, whoever is killed: it ends with its output, or with the reason
// why there is none. A task may run more than once, when a worker dies in the middle of it.
//
// Threads: any, on Client; a Future or Result belongs to one thread at a time. None may outlive the client.
#pragma once
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "freehold/process/shared_memory.hpp"
#include "freehold/process/spin.hpp"
#include "freehold/process/task_table.hpp"
#include "freehold/process/worker.hpp"

namespace freehold::process {

class Client;
class Callbacks;
using Nanoseconds = std::chrono::nanoseconds;
inline constexpr Nanoseconds kWaitForEver = Nanoseconds::max();

// How a task ended: with output, or with the reason why there is none. Holds the task's place in the table until it is
// destroyed, unless the place was wanted meanwhile.
class Result {
 public:
  Result() noexcept = default;
  explicit Result(Failure failure) noexcept : failure_(failure) {}
  ~Result();
  Result(Result&& other) noexcept;
  Result& operator=(Result&& other) noexcept;

  [[nodiscard]] bool ok() const noexcept { return has_output_ && failure_.kind == FailureKind::kNone; }
  [[nodiscard]] Failure failure() const noexcept { return failure_; }
  // The output, in the shared memory or in a copy of this result's own. Empty unless ok().
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::string_view text() const noexcept {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }

 private:
  friend class Future;
  Client* client_ = nullptr;
  Ticket ticket_;
  Failure failure_;
  bool has_output_ = false;
  std::span<const std::byte> bytes_;
  std::unique_ptr<std::byte[]> copy_;
};

// Why submit() gave no future.
enum class SubmitError : std::uint8_t {
  kNone,
  kFull,      // the table, for as long as the caller would wait
  kTooLarge,  // the input: more than max_input
  kNoWorker,  // no worker can be started, or the pool is not there
};

// What get() of a future without a task says.
[[nodiscard]] constexpr Failure failure_of(SubmitError error) noexcept {
  return {error == SubmitError::kNoWorker ? FailureKind::kNoWorker : FailureKind::kRefused,
          static_cast<std::int32_t>(error)};
}

// A task that was submitted. Destroying it drops the task.
class Future {
 public:
  Future() noexcept = default;
  explicit Future(SubmitError error) noexcept : submit_error_(error) {}
  ~Future() { cancel(); }
  Future(Future&& other) noexcept;
  Future& operator=(Future&& other) noexcept;

  // Whether there is a task, whose result was not got yet.
  [[nodiscard]] bool valid() const noexcept { return client_ != nullptr; }
  [[nodiscard]] SubmitError submit_error() const noexcept { return submit_error_; }
  // Of the task in the pool's log.
  [[nodiscard]] std::uint64_t id() const noexcept { return id_of(ticket_); }

  // Waits until the task is over, or for so long. Returns whether it is over; without a task it is.
  bool wait_for(Nanoseconds time) noexcept;
  void wait() noexcept { wait_for(kWaitForEver); }
  // Waits for the result and takes it. Without a task the result is a failure, kRefused or kNoWorker. !valid() afterwards.
  [[nodiscard]] Result get() noexcept;
  // Calls `function` with the result when it is there, on the client's callback thread (callbacks.hpp); at once, by this
  // thread, if there is no task. !valid() afterwards, so the task cannot be cancelled any more.
  void then(std::function<void(Result)> function);
  // Drops the task: it does not begin if it has not; if it runs, its output will be nobody's.
  void cancel() noexcept;
  // The same, and if it runs, its worker is killed within some 20 ms.
  void kill() noexcept;

 private:
  friend class Callbacks;
  friend class Client;
  friend class Draft;
  Future(Client& client, Ticket ticket, std::uint64_t begun) noexcept : client_(&client), ticket_(ticket), begun_(begun) {}

  Client* client_ = nullptr;
  Ticket ticket_;
  std::uint64_t begun_ = 0;
  SubmitError submit_error_ = SubmitError::kNone;
};

// For coroutines: `Result result = co_await Awaited(pool.submit(input))`, or co_await pool.run(input). The coroutine goes on
// on the client's callback thread, unless the task is over already: what takes long belongs on a thread of its own.
class Awaited {
 public:
  explicit Awaited(Future future) noexcept : future_(std::move(future)) {}

  [[nodiscard]] bool await_ready() noexcept { return future_.wait_for(Nanoseconds(0)); }
  void await_suspend(std::coroutine_handle<> coroutine) {
    future_.then([this, coroutine](Result result) {
      result_ = std::move(result);
      has_result_ = true;
      coroutine.resume();
    });
  }
  [[nodiscard]] Result await_resume() noexcept { return has_result_ ? std::move(result_) : future_.get(); }

 private:
  Future future_;
  Result result_;
  bool has_result_ = false;
};

// Whether a task that its component refuses, by returning a number, runs again.
struct RetryOptions {
  std::array<int, RetryPolicy::kCodes> codes{};  // for which numbers; all 0: for each
  unsigned attempts = 0;                         // in all, those included whose workers died; 0: it does not
  Nanoseconds delay{0};                          // before the next one, in whole milliseconds
};

struct TaskOptions {
  Nanoseconds limit{0};  // it may run for so long, then its worker is killed and it is tried again; 0: for ever
  Nanoseconds within{
      0};  // it fails unless it is over so long after its submission, waiting and all attempts together; 0: never
  unsigned attempts = 0;                  // in all, if its workers die; 0: the pool's
  Priority priority = Priority::kNormal;  // of two tasks that wait, the higher begins first, and of equals the older
  RetryOptions retry{};
  // 0: refuse at once. Else results that nobody has got yet move out of the table, so any number of futures may be kept.
  Nanoseconds wait_while_full = kWaitForEver;
};

// Latencies from submit() to get(), in 16 steps for each power of two: exact to 6 %, and cheap.
class Histogram {
 public:
  void add(std::uint64_t nanoseconds) noexcept {
    buckets_[bucket_of(nanoseconds)].fetch_add(1, std::memory_order_relaxed);  // relaxed: a statistic
  }
  [[nodiscard]] std::uint64_t count() const noexcept;
  // The middle of the step in which the latency lies that `share` (0 to 1) of them do not exceed; 0 if there are none.
  [[nodiscard]] std::uint64_t percentile(double share) const noexcept;

 private:
  static constexpr unsigned kBits = 4;  // of the steps' number
  static constexpr std::size_t kBuckets = (64 - kBits + 1) << kBits;

  // Below 16 each number is a step; from there on the upper bits, the first one left out, and how many follow.
  [[nodiscard]] static constexpr std::size_t bucket_of(std::uint64_t n) noexcept {
    if (n >> kBits == 0) return n;
    const auto shift = static_cast<unsigned>(std::bit_width(n)) - kBits - 1;
    return (std::size_t{shift + 1} << kBits) + ((n >> shift) & ((1u << kBits) - 1));
  }
  [[nodiscard]] static constexpr std::uint64_t middle_of(std::size_t bucket) noexcept {
    if (bucket >> kBits == 0) return bucket;
    const auto shift = static_cast<unsigned>(bucket >> kBits) - 1;
    const std::uint64_t least = ((std::uint64_t{1} << kBits) | (bucket & ((1u << kBits) - 1))) << shift;
    return least + (std::uint64_t{1} << shift) / 2;
  }
  std::array<std::atomic<std::uint64_t>, kBuckets> buckets_{};
};

struct ClientStats {
  std::uint64_t submitted = 0, delivered = 0, failed = 0, refused = 0;
  std::uint64_t median = 0, p90 = 0, p99 = 0;  // nanoseconds from submit() to get()
};

// A place in the table whose input its client writes itself, so that nothing is copied. Destroying it gives the place back.
class Draft {
 public:
  Draft() noexcept = default;
  explicit Draft(SubmitError error) noexcept : submit_error_(error) {}
  ~Draft();
  Draft(Draft&& other) noexcept;
  Draft& operator=(Draft&& other) noexcept;

  [[nodiscard]] bool valid() const noexcept { return client_ != nullptr; }
  [[nodiscard]] SubmitError submit_error() const noexcept { return submit_error_; }
  // Room for an input of max_input bytes, with what a former task left in it. Empty unless valid().
  [[nodiscard]] std::span<std::byte> room() const noexcept;
  // Submits the first `bytes` of it. !valid() afterwards. Errors: as Client::submit.
  [[nodiscard]] Future submit(std::size_t bytes) noexcept;

 private:
  friend class Client;
  Client* client_ = nullptr;
  Ticket ticket_;
  TaskOptions options_;
  std::uint64_t begun_ = 0;
  SubmitError submit_error_ = SubmitError::kNone;
};

class Client {
 public:
  // Pre: `memory` is a valid table and outlives the client, `slot` is nobody else's, `wakeup_fd` is its supervisor's.
  Client(const SharedMemory& memory, unsigned slot, int wakeup_fd) noexcept
      : Client(memory, TableShape(Table(memory.data()).shape()), slot, wakeup_fd) {}
  Client(const SharedMemory& memory, const TableShape& shape, unsigned slot, int wakeup_fd) noexcept;
  // Functions whose tasks are not over get kNoWorker.
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Gives a task to the workers. Errors: a future that is not valid() says why by submit_error().
  [[nodiscard]] Future submit(std::span<const std::byte> input, const TaskOptions& options = {}) noexcept;
  [[nodiscard]] Future submit(std::string_view input, const TaskOptions& options = {}) noexcept {
    return submit(std::as_bytes(std::span(input)), options);
  }
  // Submits each of the inputs, in order, until one is refused. Returns how many were; their futures are in `futures`.
  // Pre: there are as many futures as inputs.
  std::size_t submit_all(std::span<const std::span<const std::byte>> inputs, std::span<Future> futures,
                         const TaskOptions& options = {}) noexcept;

  // Takes a place to write an input into. Errors: as submit().
  [[nodiscard]] Draft draft(const TaskOptions& options = {}) noexcept;

  [[nodiscard]] Table& table() noexcept { return table_; }
  // Whether it has seen something in the table that cannot be, since it was asked last.
  [[nodiscard]] bool take_damage_suspicion() noexcept {
    return damage_suspected_.exchange(false, std::memory_order_relaxed);
  }
  [[nodiscard]] ClientStats stats() const noexcept;
  // Whether the pool's process is another one and has ended.
  [[nodiscard]] bool pool_is_gone() const noexcept;
  // Its tasks that are not over.
  [[nodiscard]] std::uint32_t open_tasks() const noexcept { return table_.open_of(slot_); }

 private:
  friend class Callbacks;
  friend class Draft;
  friend class Future;
  friend class Result;
  friend class AttachedClient;

  [[nodiscard]] Callbacks& callbacks();
  [[nodiscard]] std::optional<Ticket> acquire(Nanoseconds wait) noexcept;
  [[nodiscard]] bool is_over(Ticket ticket) const noexcept;
  // A result that was moved out of the table.
  struct Stored {
    Failure failure;
    std::size_t bytes = 0;
    std::unique_ptr<std::byte[]> output;
  };
  void store_results() noexcept;
  [[nodiscard]] std::optional<Stored> take_stored(Ticket ticket) noexcept;
  [[nodiscard]] Stored read_result(Ticket ticket) noexcept;
  void check_waiting_task(Ticket ticket) noexcept;
  void look_for_lost_entries() noexcept;
  void suspect_damage() noexcept;
  [[nodiscard]] std::uint64_t longest_wait(std::uint64_t nanoseconds) const noexcept;
  void release(Ticket ticket) noexcept;

  Table table_;
  const unsigned slot_;
  const int wakeup_fd_;
  int pool_ = -1, pool_process_ = -1;  // in a process of its own: the socket to the pool's, and its pidfd
  // Tickets that it holds or is about to hold: never fewer than the table's entries say. relaxed: a count.
  alignas(base::kCacheLine) std::atomic<std::uint64_t> held_{0};
  std::atomic<bool> damage_suspected_{false};
  std::mutex stored_lock_;  // held from the taking of a result until it is in here
  std::unordered_map<std::uint64_t, Stored> stored_;
  std::once_flag has_callbacks_;
  std::unique_ptr<Callbacks> callbacks_;
  // Statistics; relaxed.
  alignas(base::kCacheLine) std::atomic<std::uint64_t> submitted_{0};
  std::atomic<std::uint64_t> failed_{0}, refused_{0};
  Histogram latencies_;
};

// A client in another process than the pool's: any number of them share one table. Their threads are as good as the pool's
// own. If the pool's process dies, what waits fails with kNoWorker within 0.1 s.
class AttachedClient {
 public:
  // `socket`: connected to the pool's process, which passes the other end to ProcessPool::serve(). Waits for its answer.
  // Takes the socket over, and keeps it open: that is how the pool knows that this process lives. Errors: !ok(), error().
  explicit AttachedClient(int socket);
  // Of the pool that a process of this user serves by that name: freehold workers --serve NAME, or NamedSocket.
  explicit AttachedClient(const std::string& name);
  // Pre: no future, result or caller of submit() is left.
  ~AttachedClient();
  AttachedClient(const AttachedClient&) = delete;
  AttachedClient& operator=(const AttachedClient&) = delete;

  [[nodiscard]] bool ok() const noexcept { return client_.has_value(); }
  // Why it is not.
  [[nodiscard]] const std::string& error() const noexcept { return error_; }
  // Pre: ok().
  [[nodiscard]] Client& client() noexcept { return *client_; }

 private:
  void attach();

  std::string error_;
  const int socket_;
  int wakeup_fd_ = -1, process_ = -1;
  SharedMemory memory_;
  std::optional<Client> client_;
};

}  // namespace freehold::process
