// SPDX-License-Identifier: MIT
// The layout of a task table in shared memory. task_table.hpp is the protocol.
//
//   header | free bits | ready bits | times of submission | sleepers' bits |
//   shared words | clients | workers | entries | areas
//
// An entry has one input and one output area at fixed places, as large as the largest task may be. In memory of a memfd only
// pages that were used exist, so there is no allocator of large buffers that could lose one in a crash. Large areas begin at
// a page and end with a guard page; small ones lie side by side.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "freehold/base/bits.hpp"
#include "freehold/process/task.hpp"
#include "freehold/process/task_word.hpp"
#include "freehold/sync/atomics.hpp"

namespace freehold::process {

struct TableShape {
  std::uint32_t entries = 256;                              // tasks at a time
  std::uint32_t workers = 4;                                // slots of worker processes, at most TaskWord::kMaxWorkers
  std::uint32_t clients = 64;                               // slots of client processes, at most TaskWord::kMaxClients
  std::uint64_t max_input = 1 << 20, max_output = 1 << 20;  // bytes of one task

  friend constexpr bool operator==(const TableShape&, const TableShape&) noexcept = default;
};

// Whether a task that its component rejects runs again; RetryOptions as the table has it.
struct RetryPolicy {
  std::array<std::int32_t, kMaxRetryCodes> codes{};  // for these of the component's codes; all 0: for each
  std::uint32_t attempts = 0;                        // in all, including those whose worker died; 0: no retry
  std::uint32_t delay_ms = 0;                        // before the next one
};

// What a task may take; 0 is no limit, or the supervisor's default. TaskOptions as the table has it.
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

// The structs of the table, and as an object their offsets from its beginning.
template <class A>
struct TaskTableLayout {
  template <class T>
  using atomic = typename A::template atomic<T>;
  template <class T>
  using var = typename A::template var<T>;

  static constexpr std::uint32_t kMaxEntries = 1 << 16;
  static constexpr std::uint64_t kMaxArea = std::uint64_t{1} << 40;
  static constexpr std::uint64_t kPage = 4096;
  // Each guard costs a worker two mappings, of which it may have 65,530.
  static constexpr std::uint32_t kMostGuarded = 8192;

  // Nobody writes it after TaskTable::create().
  struct alignas(base::kCacheLine) Header {
    std::uint64_t magic;
    std::uint32_t version;
    TableShape shape;
    std::uint64_t bytes;
  };
  template <unsigned kWords>
  struct alignas(base::kCacheLine) BitsOf {
    atomic<std::uint64_t> bits[kWords];
  };
  using Bits = BitsOf<1>;
  using ReadyBits = BitsOf<kPriorities>;
  template <class T>
  struct alignas(base::kCacheLine) Line {
    atomic<T> word;
  };
  struct alignas(base::kCacheLine) Worker {
    atomic<std::uint32_t> wakes;     // a futex: one more for each time that the worker is woken
    atomic<std::uint32_t> up;        // whether its process has reached its loop
    atomic<std::uint64_t> ended;     // tasks that it has completed; statistics
    atomic<std::uint64_t> retried;   // tasks that it has made ready again; statistics
    atomic<std::uint64_t> identity;  // of its process, 0: none
  };
  struct alignas(base::kCacheLine) Entry {
    atomic<std::uint64_t> state;
    // Written by the entry's owner.
    var<std::uint64_t> input_bytes, output_bytes;
    var<Failure> failure;
    // Hints for the supervisor, nanoseconds. `started` is set to 0 whenever the entry becomes ready, so that the time of a
    // former task, or attempt, is never taken for this one's.
    atomic<std::uint64_t> limit, started;
    atomic<std::uint64_t> expires;  // the time
    atomic<std::uint64_t> packed;   // PackedParameters
    // Used only for tasks that may run again after their component has rejected them.
    alignas(base::kCacheLine) atomic<std::uint64_t> due;  // the time at which the task is ready again
    atomic<std::uint32_t> delay_ms;
    atomic<std::int32_t> codes[kMaxRetryCodes];
  };

  // The shared words, a line each.
  enum class SharedWord : std::uint8_t { kFreeCursor, kSpace, kClosed, kNotifyOn, kEpoch, kReadyCursors, kCount };

  static_assert(sizeof(Header) == base::kCacheLine && sizeof(Bits) == base::kCacheLine &&
                sizeof(Line<std::uint32_t>) == base::kCacheLine);
  static_assert(sizeof(Worker) == base::kCacheLine && sizeof(Entry) == 2 * base::kCacheLine);
  static_assert(sizeof(ReadyBits) == base::kCacheLine);

  explicit TaskTableLayout(const TableShape& shape) noexcept
      : free(sizeof(Header)),
        ready(free + words(shape.entries) * sizeof(Bits)),
        submitted(ready + words(shape.entries) * sizeof(ReadyBits)),
        sleeping(submitted + base::align_up(shape.entries * sizeof(atomic<std::uint64_t>), base::kCacheLine)),
        lines(sleeping + words(shape.workers) * sizeof(Bits)),
        clients(lines + static_cast<std::uint64_t>(SharedWord::kCount) * base::kCacheLine),
        workers(clients + shape.clients * sizeof(Line<std::uint32_t>)),
        entries(workers + shape.workers * sizeof(Worker)),
        areas(base::align_up(entries + shape.entries * sizeof(Entry), kPage) + kPage),
        guarded(area_alignment(shape) == kPage && shape.entries <= kMostGuarded),
        output_offset(base::align_up(shape.max_input, area_alignment(shape)) + (guarded ? kPage : 0)),
        area_bytes(output_offset + base::align_up(shape.max_output, area_alignment(shape)) + (guarded ? kPage : 0)),
        end(areas + base::align_up(area_bytes * shape.entries, kPage)) {}

  // Bytes that a table of this shape takes, areas included; 0 if the shape is impossible.
  [[nodiscard]] static std::uint64_t bytes(const TableShape& shape) noexcept {
    if (shape.entries == 0 || shape.entries > kMaxEntries || shape.workers == 0 || shape.workers > TaskWord::kMaxWorkers ||
        shape.clients == 0 || shape.clients > TaskWord::kMaxClients || shape.max_input == 0 || shape.max_output == 0 ||
        shape.max_input > kMaxArea || shape.max_output > kMaxArea)
      return 0;
    return TaskTableLayout(shape).end;
  }
  // Where the part at this offset, or a shared word, lies in this process.
  template <class T>
  [[nodiscard]] static T* at(void* table, std::uint64_t offset) noexcept {
    return reinterpret_cast<T*>(static_cast<std::byte*>(table) + offset);
  }
  template <class T>
  [[nodiscard]] atomic<T>* word(void* table, SharedWord which) const noexcept {
    return &at<Line<T>>(table, lines + static_cast<std::uint64_t>(which) * base::kCacheLine)->word;
  }
  static std::uint64_t words(std::uint32_t n) noexcept { return base::ceil_div(n, 64); }
  // Small tasks lie side by side. Large ones begin at a page, so that their pages can be given back, and end with a guard.
  static std::uint64_t area_alignment(const TableShape& shape) noexcept {
    return shape.max_input + shape.max_output <= kPage ? base::kCacheLine : kPage;
  }

  std::uint64_t free, ready, submitted, sleeping, lines, clients, workers, entries, areas;
  bool guarded;
  std::uint64_t output_offset, area_bytes, end;
};

}  // namespace freehold::process
