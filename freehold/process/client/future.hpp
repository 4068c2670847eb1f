// SPDX-License-Identifier: MIT
// The handles that a user of the process pool holds: a Future for a task, a Result for its end, and Awaited for coroutines.
//
// A task is never lost and its result is never delivered twice, whichever process is killed: it ends with its output, or
// with the reason why it has none. It may run more than once, if a worker dies in the middle of it.
//
// Each handle owns one entry of the task table and gives it back when it is destroyed. No handle may outlive its client.
// Threads: a handle belongs to one thread at a time.
#pragma once
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "freehold/process/table/task.hpp"

namespace freehold::process {

class Client;

// A client's entry of the table. Moving leaves the source empty or, by assignment, exchanges the two.
struct EntryHandle {
  EntryHandle() noexcept = default;
  EntryHandle(Client& c, Ticket t, std::uint64_t time) noexcept : client(&c), ticket(t), begun(time) {}
  ~EntryHandle() = default;
  EntryHandle(EntryHandle&& other) noexcept
      : client(std::exchange(other.client, nullptr)), ticket(other.ticket), begun(other.begun) {}
  EntryHandle& operator=(EntryHandle&& other) noexcept {
    std::swap(client, other.client);
    std::swap(ticket, other.ticket);
    std::swap(begun, other.begun);
    return *this;
  }

  Client* client = nullptr;  // null: no entry
  Ticket ticket;
  std::uint64_t begun = 0;  // the time of submit()
};

/// Tells how a task ended: with output, or with the reason why it has none.
class Result {
 public:
  Result() noexcept = default;
  /// A result without a task.
  /// @param error  the reason
  explicit Result(Failure error) noexcept : error_(error) {}
  ~Result();
  Result(Result&& other) noexcept { swap(other); }
  Result& operator=(Result&& other) noexcept {
    swap(other);
    return *this;
  }

  /// @return whether the task has output.
  [[nodiscard]] bool ok() const noexcept { return error_.kind == FailureKind::kNone; }
  /// @return why there is no output; kNone if there is one.
  [[nodiscard]] Failure error() const noexcept { return error_; }
  /// @return the output, in shared memory or in this result's own; empty unless ok(). Valid as long as the result.
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }
  /// @return bytes() as text.
  [[nodiscard]] std::string_view text() const noexcept {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }

 private:
  friend class Client;
  friend class GearmanFuture;
  // Owns the memory of an output that lies outside of the table.
  using Memory = std::unique_ptr<void, void (*)(void*)>;

  // The result of a task that was taken; its entry is given back with the result.
  Result(EntryHandle entry, Failure error, std::span<const std::byte> bytes) noexcept
      : entry_(std::move(entry)), error_(error), bytes_(bytes) {}
  Result(Memory memory, Failure error, std::span<const std::byte> bytes) noexcept
      : error_(error), bytes_(bytes), memory_(std::move(memory)) {}
  void swap(Result& other) noexcept {
    std::swap(entry_, other.entry_);
    std::swap(error_, other.error_);
    std::swap(bytes_, other.bytes_);
    std::swap(memory_, other.memory_);
  }

  EntryHandle entry_;
  Failure error_{FailureKind::kNoTask};
  std::span<const std::byte> bytes_;
  Memory memory_{nullptr, nullptr};
};

/// A submitted task. Destroying it drops the task.
class Future {
 public:
  Future() noexcept = default;
  /// A future without a task.
  /// @param error  why no task was submitted
  explicit Future(FailureKind error) noexcept : error_{error} {}
  ~Future() { cancel(); }
  Future(Future&& other) noexcept = default;
  Future& operator=(Future&& other) noexcept = default;

  /// @return whether there is a task whose result has not been taken yet.
  [[nodiscard]] bool valid() const noexcept { return entry_.client != nullptr; }
  /// @return why submit() made no task; kNone if it made one.
  [[nodiscard]] Failure error() const noexcept { return error_; }
  /// @return the number of the task in the pool's log.
  [[nodiscard]] std::uint64_t id() const noexcept { return id_of(entry_.ticket); }

  /// Waits until the task is over.
  /// @param timeout  at most so long; nullopt: no limit
  /// @return whether it is over; true without a task.
  bool wait_for(std::optional<Nanoseconds> timeout) noexcept;
  /// Waits until the task is over.
  void wait() noexcept { wait_for(std::nullopt); }
  /// Waits for the result and takes it; !valid() afterwards.
  /// @return the result; without a task error(), or kNoTask.
  [[nodiscard]] Result get() noexcept;
  /// Calls `function` once with the result, on the client's callback thread; !valid() afterwards, so the task can no longer
  /// be cancelled. Without a task it calls at once, on this thread.
  /// @param function  must not block for long: it delays the functions of other tasks
  void then(std::function<void(Result)> function);
  /// Drops the task. A waiting task never starts; the output of a running one is discarded.
  void cancel() noexcept;
  /// Drops the task and, if it runs, kills its worker within about 20 ms.
  void kill() noexcept;

 private:
  friend class Client;
  explicit Future(EntryHandle entry) noexcept : entry_(std::move(entry)) {}

  EntryHandle entry_;
  Failure error_;
};

/// Makes a future awaitable: `Result result = co_await Awaited(pool.submit(input))`, or co_await pool.run(input). The
/// coroutine continues on the client's callback thread, unless the task is already over: long work belongs on another
/// thread.
class Awaited {
 public:
  /// @param future  the task to wait for
  explicit Awaited(Future future) noexcept : future_(std::move(future)) {}

  /// @return whether the task is over.
  [[nodiscard]] bool await_ready() noexcept { return future_.wait_for(Nanoseconds(0)); }
  /// Resumes the coroutine when the task is over.
  /// @param coroutine  the one that waits
  void await_suspend(std::coroutine_handle<> coroutine) {
    future_.then([this, coroutine](Result result) {
      result_ = std::move(result);
      has_result_ = true;
      coroutine.resume();
    });
  }
  /// @return the result of the task.
  [[nodiscard]] Result await_resume() noexcept { return has_result_ ? std::move(result_) : future_.get(); }

 private:
  Future future_;
  Result result_;
  bool has_result_ = false;
};

}  // namespace freehold::process
