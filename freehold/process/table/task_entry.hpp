// SPDX-License-Identifier: MIT
// An entry of a task table: the word that says who owns it, the lengths of its data, and what its task may take.
//
// Invariant: only the owner of the entry writes what follows the word, and publishes it by the word. Limits and times are
// hints for the supervisor, which reads them beside a word that must still be there when it acts.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "freehold/base/bits.hpp"
#include "freehold/process/table/task.hpp"
#include "freehold/process/table/task_word.hpp"

namespace freehold::process {

// Decides whether a task that its component rejects runs again: RetryOptions as the table has it.
struct RetryPolicy {
  std::array<std::int32_t, kMaxRetryCodes> codes{};  // for these of the component's codes; all 0: for each
  std::uint32_t attempts = 0;                        // in all, including those whose worker died; 0: no retry
  std::uint32_t delay_ms = 0;                        // before the next one
};

// The limits of a task; 0 is no limit, or the supervisor's default. TaskOptions as the table has it.
struct TaskParameters {
  std::uint64_t limit = 0;      // nanoseconds that one run may take
  std::uint64_t expires = 0;    // the time by which the task has to be over
  std::uint32_t within_ms = 0;  // from its submission until then, for the reason
  std::uint32_t attempts = 0;
  Priority priority = Priority::kNormal;
  std::uint64_t submitted = 0;  // the time; of two tasks of one priority the older one starts first
  RetryPolicy retry{};
};

// Some of TaskParameters in one word: bits 0..7 attempts, 8..9 priority, 10..15 attempts when the component rejects the
// task, 32..63 within_ms.
struct PackedParameters {
  explicit PackedParameters(std::uint64_t word) noexcept : bits(word) {}
  explicit PackedParameters(const TaskParameters& parameters) noexcept
      : bits(std::min(parameters.attempts, 255u) | static_cast<std::uint64_t>(parameters.priority) << 8 |
             std::uint64_t{std::min(parameters.retry.attempts, TaskWord::kMaxAttempts)} << 10 |
             std::uint64_t{parameters.within_ms} << 32) {}
  [[nodiscard]] unsigned attempts() const noexcept { return bits & 255; }
  // Less than kPriorities, even if the word was overwritten.
  [[nodiscard]] unsigned priority() const noexcept { return std::min<unsigned>(bits >> 8 & 3, kPriorities - 1); }
  [[nodiscard]] unsigned retry_attempts() const noexcept { return bits >> 10 & 63; }
  [[nodiscard]] std::uint32_t within_ms() const noexcept { return static_cast<std::uint32_t>(bits >> 32); }
  std::uint64_t bits;
};

template <class A>
struct alignas(base::kCacheLine) TaskEntry {
  template <class T>
  using atomic = typename A::template atomic<T>;
  template <class T>
  using var = typename A::template var<T>;
  static constexpr std::uint64_t kKilled = 1;  // the limit of a task whose client wants its worker killed

  // The owner's; relaxed, all: published by the word.
  void fill(std::uint64_t bytes, const TaskParameters& parameters) noexcept {
    input_bytes.store(bytes);
    limit.store(parameters.limit, std::memory_order_relaxed);
    started.store(0, std::memory_order_relaxed);
    expires.store(parameters.expires, std::memory_order_relaxed);
    packed.store(PackedParameters(parameters).bits, std::memory_order_relaxed);
    if (parameters.retry.attempts == 0) return;
    delay_ms.store(parameters.retry.delay_ms, std::memory_order_relaxed);
    for (unsigned i = 0; i < kMaxRetryCodes; ++i) codes[i].store(parameters.retry.codes[i], std::memory_order_relaxed);
  }
  // Notes when the run began, in nanoseconds of the supervisor's clock.
  void began(std::uint64_t now) noexcept { started.store(now, std::memory_order_relaxed); }
  // Returns whether the task runs again after this attempt, which its component has rejected with this code.
  [[nodiscard]] bool wants_retry(unsigned attempt, std::int32_t code) const noexcept {
    if (attempt + 1 >= parameters().retry_attempts()) return false;
    bool each = true;
    for (const atomic<std::int32_t>& one : codes) {
      const std::int32_t wanted = one.load(std::memory_order_relaxed);
      if (wanted == code) return true;
      each = each && wanted == 0;
    }
    return each;
  }
  // Notes that the next run begins after the task's delay. Returns the delay in nanoseconds.
  std::uint64_t delay_from(std::uint64_t now) noexcept {
    const std::uint64_t delay = std::uint64_t{delay_ms.load(std::memory_order_relaxed)} * 1'000'000;
    started.store(0, std::memory_order_relaxed);
    due.store(now + delay, std::memory_order_relaxed);
    return delay;
  }

  // relaxed: it belongs to the word that the caller has read, or is a hint.
  [[nodiscard]] PackedParameters parameters() const noexcept {
    return PackedParameters(packed.load(std::memory_order_relaxed));
  }
  // The task's own number, or the pool's.
  [[nodiscard]] unsigned attempts(unsigned of_pool) const noexcept {
    const unsigned own = parameters().attempts();
    return own != 0 ? std::min(own, TaskWord::kMaxAttempts) : of_pool;
  }
  // Returns whether the task has to be over.
  [[nodiscard]] bool expired(std::uint64_t now) const noexcept {
    const std::uint64_t time = expires.load(std::memory_order_relaxed);
    return time != 0 && now > time;
  }

  atomic<std::uint64_t> state;  // TaskWord; only TaskEntries changes it
  var<std::uint64_t> input_bytes, output_bytes;
  var<Failure> failure;
  // Nanoseconds. `started` is the worker's note of when the run began. It is set to 0 whenever the entry becomes ready, so
  // that the time of a former task, or attempt, is never taken for this one's.
  atomic<std::uint64_t> limit, started;
  atomic<std::uint64_t> expires;  // the time
  atomic<std::uint64_t> packed;   // PackedParameters
  // Used only for tasks that may run again after their component has rejected them.
  alignas(base::kCacheLine) atomic<std::uint64_t> due;  // the time at which the task is ready again
  atomic<std::uint32_t> delay_ms;
  atomic<std::int32_t> codes[kMaxRetryCodes];
};

}  // namespace freehold::process
