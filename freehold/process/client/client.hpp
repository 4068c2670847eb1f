// SPDX-License-Identifier: MIT
// A client of a task table: a task's way from its input to its end, as its thread sees it. Input is copied in once; output
// is read where the worker has written it, or copied out once. The handles of future.hpp do what their users ask for by the
// functions of an entry.
//
//   submit      takes an entry, copies the input, and lets the workers claim it
//   wait_for    sleeps on the entry's word until the task is over
//   get         takes the result; its entry is given back by release(), with the result
//   cancel      gives the entry back, whatever the task's state is
//
// A full table does not block a program that keeps futures: submit() then moves results that are there into memory of the
// client's own. Invariant: held_ counts every entry that belongs to the client, or is about to.
//
// Threads: any, but one at a time for an entry. No handle may outlive its client.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>

#include "freehold/process/client/future.hpp"
#include "freehold/process/table/shared_memory.hpp"
#include "freehold/process/table/task_counts.hpp"
#include "freehold/process/table/task_table.hpp"

namespace freehold::process {

class Callbacks;

class Client {
 public:
  // Pre: `memory` is a valid table and outlives the client, the slot is free, and `wakeup_fd` belongs to the supervisor of
  // that table.
  Client(const SharedMemory& memory, unsigned slot, int wakeup_fd) noexcept
      : Client(memory, TableShape(Table(memory.data()).shape()), slot, wakeup_fd) {}
  // The same, of a table whose shape was checked before. `pool_socket`, `pool_process`: the socket to the pool's process and
  // its pidfd, if it is another one.
  Client(const SharedMemory& memory, const TableShape& shape, unsigned slot, int wakeup_fd, int pool_socket = -1,
         int pool_process = -1) noexcept;
  // Functions whose tasks are not over get kNoWorker.
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // As ProcessPool's.
  [[nodiscard]] Future submit(Input task, const TaskOptions& options = {}) noexcept;
  // Waits until `client`'s tasks are over, nullopt: all clients', for at most so long.
  [[nodiscard]] bool drain(std::optional<unsigned> client, std::optional<Nanoseconds> timeout) const noexcept;
  // Without the workers' figures.
  [[nodiscard]] ProcessPoolStats stats() const noexcept;

  // ---- one task, by the entry of its handle

  [[nodiscard]] bool is_over(Ticket ticket) const noexcept;
  bool wait_for(Ticket ticket, std::optional<Nanoseconds> timeout) noexcept;
  [[nodiscard]] Result get(EntryHandle entry) noexcept;
  void then(EntryHandle entry, std::function<void(Result)> function);
  void cancel(Ticket ticket) noexcept;
  void kill(Ticket ticket) noexcept;
  // The task was taken.
  void release(Ticket ticket) noexcept;

  // ---- the pool, its supervisor, and the thread that calls functions

  [[nodiscard]] Table& table() noexcept { return table_; }
  [[nodiscard]] unsigned slot() const noexcept { return slot_; }
  // Returns when the functions of all tasks have run; of those that are not over with kNoWorker.
  void end_callbacks() noexcept;
  // Says if the client has seen an impossible value in the table since the last call.
  [[nodiscard]] bool take_damage_suspicion() noexcept {
    return damage_suspected_.exchange(false, std::memory_order_relaxed);
  }
  // Says if the pool belongs to another process, which has ended.
  [[nodiscard]] bool pool_is_gone() const noexcept;
  // A waiting client looks from time to time: damage does not wake it, and the supervisor may be asleep.
  void check_waiting_task(Ticket ticket) noexcept;
  // The longest sleep before such a look, at most `nanoseconds`.
  [[nodiscard]] std::uint64_t longest_wait(std::uint64_t nanoseconds) const noexcept;

 private:
  // A result that was moved out of the table.
  struct Stored {
    Failure failure;
    std::size_t bytes = 0;
    std::unique_ptr<std::byte[]> output;
  };

  [[nodiscard]] std::optional<Ticket> acquire(std::optional<Nanoseconds> wait, FailureKind& error) noexcept;
  [[nodiscard]] Result take_result(const EntryHandle& entry) noexcept;
  [[nodiscard]] bool store_results() noexcept;
  [[nodiscard]] std::optional<Stored> take_stored(Ticket ticket) noexcept;
  [[nodiscard]] Stored read_result(Ticket ticket) noexcept;
  void look_for_lost_entries() noexcept;
  void suspect_damage() noexcept;
  void give_back_input(Ticket ticket) const noexcept;
  void forget_entry() noexcept { held_.fetch_sub(1, std::memory_order_relaxed); }

  const SharedMemory& memory_;
  Table table_;
  const unsigned slot_;
  const int wakeup_fd_;
  const int pool_socket_, pool_process_;
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
