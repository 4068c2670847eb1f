// SPDX-License-Identifier: MIT
// A client of a task table: any thread submits tasks and gets their results. Input is copied in once; output is read where
// the worker has written it, or copied out once.
//
// A full table does not block a program that keeps futures: submit() then moves results that are there into memory of the
// client's own. Invariant: held_ counts every entry that belongs to the client, or is about to.
//
// Threads: any, on Client; a handle (future.hpp) belongs to one thread at a time. No handle may outlive its client.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>

#include "freehold/process/client/future.hpp"
#include "freehold/process/table/shared_memory.hpp"
#include "freehold/process/table/task_counts.hpp"
#include "freehold/process/table/task_table.hpp"

namespace freehold::process {

/// Submits tasks to a pool: the pool's own client, or the one that AttachedClient::client() returns in another process.
class Client {
 public:
  /// For the pool itself; others use AttachedClient. Pre: `memory` is a valid table and outlives the client, the slot is
  /// free, and `wakeup_fd` belongs to the supervisor of that table.
  /// @param memory     the shared memory that holds the table
  /// @param slot       the client's slot in the table
  /// @param wakeup_fd  the supervisor's wakeup eventfd
  Client(const SharedMemory& memory, unsigned slot, int wakeup_fd) noexcept
      : Client(memory, TableShape(Table(memory.data()).shape()), slot, wakeup_fd) {}
  /// The same, of a table whose shape was checked before.
  /// @param memory     the shared memory that holds the table
  /// @param shape      the shape of the table
  /// @param slot       the client's slot in the table
  /// @param wakeup_fd  the supervisor's wakeup eventfd
  Client(const SharedMemory& memory, const TableShape& shape, unsigned slot, int wakeup_fd) noexcept;
  // Functions whose tasks are not over get kNoWorker.
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// Gives a task to the workers.
  /// @param task     text or bytes; copied into the table
  /// @param options  timeouts, priority and retries of this task
  /// @return the task. Errors: a future that is not valid(); its submit_error() says why.
  [[nodiscard]] Future submit(Input task, const TaskOptions& options = {}) noexcept;
  /// Submits the inputs in order, until one is not accepted.
  /// @param inputs   one for each task
  /// @param futures  receives the tasks. Pre: as many as inputs
  /// @param options  of each task
  /// @return how many were submitted.
  std::size_t submit_all(std::span<const std::span<const std::byte>> inputs, std::span<Future> futures,
                         const TaskOptions& options = {}) noexcept;

  /// Takes a place in the table to write an input into.
  /// @param options  of the task
  /// @return the place. Errors: as submit().
  [[nodiscard]] Draft draft(const TaskOptions& options = {}) noexcept;

  /// For the pool itself. @return the table.
  [[nodiscard]] Table& table() noexcept { return table_; }
  /// For the pool itself. Returns when the functions of all tasks have run; of those that are not over with kNoWorker.
  void end_callbacks() noexcept;
  /// For the supervisor. @return whether the client has seen an impossible value in the table since the last call.
  [[nodiscard]] bool take_damage_suspicion() noexcept {
    return damage_suspected_.exchange(false, std::memory_order_relaxed);
  }
  /// @return the figures of this client's tasks.
  [[nodiscard]] ClientStats stats() const noexcept { return counts_.stats(); }
  /// @return whether the pool belongs to another process, which has ended.
  [[nodiscard]] bool pool_is_gone() const noexcept;
  /// @return how many of this client's tasks are not over.
  [[nodiscard]] std::uint32_t open_tasks() const noexcept { return table_.entries().open_of(slot_); }

 private:
  friend class AttachedClient;
  friend class Callbacks;
  friend class Draft;
  friend class Future;
  friend class Result;

  // A result that was moved out of the table.
  struct Stored {
    Failure failure;
    std::size_t bytes = 0;
    std::unique_ptr<std::byte[]> output;
  };

  [[nodiscard]] Callbacks& callbacks();
  [[nodiscard]] std::optional<Ticket> acquire(std::optional<Nanoseconds> wait, SubmitError& error) noexcept;
  [[nodiscard]] bool is_over(Ticket ticket) const noexcept;
  [[nodiscard]] bool store_results() noexcept;
  [[nodiscard]] std::optional<Stored> take_stored(Ticket ticket) noexcept;
  [[nodiscard]] Stored read_result(Ticket ticket) noexcept;
  void check_waiting_task(Ticket ticket) noexcept;
  void look_for_lost_entries() noexcept;
  void suspect_damage() noexcept;
  [[nodiscard]] std::uint64_t longest_wait(std::uint64_t nanoseconds) const noexcept;
  void give_back_input(Ticket ticket) const noexcept;
  void release(Ticket ticket) noexcept;
  void forget_entry() noexcept { held_.fetch_sub(1, std::memory_order_relaxed); }

  const SharedMemory& memory_;
  Table table_;
  const unsigned slot_;
  const int wakeup_fd_;
  int pool_socket_ = -1, pool_process_ = -1;  // if the pool is another process's: the socket to it, and its pidfd
  // relaxed: a count.
  alignas(base::kCacheLine) std::atomic<std::uint64_t> held_{0};
  std::atomic<bool> damage_suspected_{false};
  std::mutex stored_lock_;  // held from the taking of a result until it is in stored_
  std::unordered_map<std::uint64_t, Stored> stored_;
  std::once_flag has_callbacks_;
  std::unique_ptr<Callbacks> callbacks_;
  alignas(base::kCacheLine) TaskCounts counts_;
};

}  // namespace freehold::process
