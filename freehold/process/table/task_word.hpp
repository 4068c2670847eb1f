// SPDX-License-Identifier: MIT
// The state word of a task table's entry. It alone decides who may touch the entry, in one atomic of 64 bits:
//
//   bits  0..2   state
//   bit   3      waited: the client sleeps
//   bit   4      abandoned by its client
//   bit   5      overdue: its worker is about to be killed
//   bits  6..11  attempt, from 0
//   bits 12..21  slot of the worker that runs it, or ran it last
//   bits 22..31  slot of the client that it belongs to
//   bits 32..63  generation: one more each time the entry is taken
//
// Everything that may change while a thread sleeps on the word is in the low 32 bits, which a futex compares.
#pragma once
#include <cstdint>

#include "freehold/process/table/task.hpp"

namespace freehold::process {

enum class TaskState : std::uint8_t {
  kFree,     // no client has it
  kFilling,  // the client writes the input
  kReady,    // the task waits for a worker
  kRunning,  // the worker reads the input and writes the output
  kDone,     // the output waits for the client
  kFailed,   // the reason of the failure waits for the client
  kTaking,   // the client reads output or reason
  kDelayed,  // the task waits for the time at which it is ready again
};

class TaskWord {
 public:
  static constexpr unsigned kMaxAttempts = 63, kMaxWorkers = 1023, kMaxClients = 1023;
  static constexpr unsigned kSupervisor = kMaxWorkers;  // a worker's slot, of tasks that the supervisor ends itself
  static constexpr unsigned kPurger = kMaxClients;      // a client's slot, of entries whose pages are given back

  constexpr TaskWord() noexcept = default;
  constexpr explicit TaskWord(std::uint64_t bits) noexcept : bits_(bits) {}
  [[nodiscard]] constexpr std::uint64_t bits() const noexcept { return bits_; }

  [[nodiscard]] constexpr TaskState state() const noexcept { return static_cast<TaskState>(bits_ & 7); }
  [[nodiscard]] constexpr bool waited() const noexcept { return (bits_ & kWaited) != 0; }
  [[nodiscard]] constexpr bool abandoned() const noexcept { return (bits_ & kAbandoned) != 0; }
  [[nodiscard]] constexpr bool overdue() const noexcept { return (bits_ & kOverdue) != 0; }
  [[nodiscard]] constexpr unsigned attempt() const noexcept { return field(6, 6); }
  [[nodiscard]] constexpr unsigned worker() const noexcept { return field(12, 10); }
  [[nodiscard]] constexpr unsigned client() const noexcept { return field(22, 10); }
  [[nodiscard]] constexpr std::uint32_t generation() const noexcept { return static_cast<std::uint32_t>(bits_ >> 32); }
  // For a worker, or for its time.
  [[nodiscard]] constexpr bool waits() const noexcept {
    return state() == TaskState::kReady || state() == TaskState::kDelayed;
  }
  [[nodiscard]] constexpr bool is_over() const noexcept {
    return state() == TaskState::kDone || state() == TaskState::kFailed;
  }

  [[nodiscard]] constexpr TaskWord with(TaskState state) const noexcept {
    return TaskWord((bits_ & ~std::uint64_t{7}) | static_cast<std::uint64_t>(state));
  }
  [[nodiscard]] constexpr TaskWord with_waited() const noexcept { return TaskWord(bits_ | kWaited); }
  [[nodiscard]] constexpr TaskWord with_abandoned() const noexcept { return TaskWord(bits_ | kAbandoned); }
  [[nodiscard]] constexpr TaskWord with_overdue() const noexcept { return TaskWord(bits_ | kOverdue); }
  [[nodiscard]] constexpr TaskWord with_worker(unsigned worker) const noexcept { return with_field(12, 10, worker); }
  // The word of a task that is over, or made ready again.
  [[nodiscard]] constexpr TaskWord without_flags() const noexcept { return TaskWord(bits_ & ~kFlags); }
  // Ready for another worker, after its own has died.
  [[nodiscard]] constexpr TaskWord next_attempt() const noexcept {
    return TaskWord(bits_ & ~kOverdue).with(TaskState::kReady).with_field(6, 6, attempt() + 1);
  }
  // The word of a free entry that the client takes.
  [[nodiscard]] constexpr TaskWord taken_by(unsigned client) const noexcept {
    return TaskWord(std::uint64_t{generation() + 1u} << 32).with(TaskState::kFilling).with_field(22, 10, client);
  }
  // The word that taken_by() made.
  [[nodiscard]] static constexpr TaskWord filling(std::uint32_t generation, unsigned client) noexcept {
    return TaskWord(std::uint64_t{generation - 1} << 32).taken_by(client);
  }
  [[nodiscard]] constexpr TaskWord freed() const noexcept { return TaskWord(std::uint64_t{generation()} << 32); }
  // Returns whether both are the same attempt of the same task in the same state, whatever the flags.
  [[nodiscard]] constexpr bool same_attempt(TaskWord other) const noexcept { return ((bits_ ^ other.bits_) & ~kFlags) == 0; }
  friend constexpr bool operator==(TaskWord, TaskWord) noexcept = default;

 private:
  static constexpr std::uint64_t kWaited = 8, kAbandoned = 16, kOverdue = 32;
  static constexpr std::uint64_t kFlags = kWaited | kAbandoned | kOverdue;

  [[nodiscard]] constexpr unsigned field(unsigned at, unsigned width) const noexcept {
    return static_cast<unsigned>(bits_ >> at) & ((1u << width) - 1);
  }
  [[nodiscard]] constexpr TaskWord with_field(unsigned at, unsigned width, unsigned value) const noexcept {
    const std::uint64_t mask = ((std::uint64_t{1} << width) - 1) << at;
    return TaskWord((bits_ & ~mask) | (std::uint64_t{value} << at & mask));
  }

  std::uint64_t bits_ = 0;
};

}  // namespace freehold::process
