// SPDX-License-Identifier: MIT
// Where the parts of a task table lie in shared memory: the structs, their places, and each task's buffers. task_table.hpp
// is the protocol.
//
//   header | free bits | ready bits | times of submission | sleepers' bits |
//   shared words | clients | workers | entries | areas
//
// An entry has one input and one output area at fixed places, as large as the largest task may be. In memory of a memfd only
// pages that were used exist, so there is no allocator of large buffers that could lose one in a crash. Large areas begin at
// a page and end with a guard page; small ones lie side by side.
//
// Invariant: nothing is read from the table to find a part, so that a component that writes wildly cannot move one.
//
// Threads: any; nothing changes after construction.
#pragma once
#include <cstddef>
#include <cstdint>

#include "freehold/base/bits.hpp"
#include "freehold/process/table/task_entry.hpp"
#include "freehold/sync/atomics.hpp"

namespace freehold::process {

struct TableShape {
  std::uint32_t entries = 256;                              // tasks at a time
  std::uint32_t workers = 4;                                // slots of worker processes, at most TaskWord::kMaxWorkers
  std::uint32_t clients = 64;                               // slots of client processes, at most TaskWord::kMaxClients
  std::uint64_t max_input = 1 << 20, max_output = 1 << 20;  // bytes of one task

  friend constexpr bool operator==(const TableShape&, const TableShape&) noexcept = default;
};

// Describes the places of a table of this shape, as offsets from its beginning.
template <class A>
struct TaskTableLayout {
  template <class T>
  using atomic = typename A::template atomic<T>;

  static constexpr std::uint64_t kMagic = 0x656c626174687266;  // "frhtable"
  static constexpr std::uint32_t kVersion = 4;
  static constexpr std::uint32_t kMaxEntries = 1 << 16;
  static constexpr std::uint64_t kMaxArea = std::uint64_t{1} << 40;
  static constexpr std::uint64_t kPage = 4096;
  // Each guard costs a worker two mappings, of which it may have 65,530.
  static constexpr std::uint32_t kMostGuarded = 8192;
  // Bytes of each area that are kept. Used pages beyond them are given back when the entry was free for a while.
  static constexpr std::uint64_t kKeptBytes = 64 * 1024;
  // Inputs and outputs from here on, in bytes, are given back by their client as soon as they are not needed. Below that the
  // supervisor does it later: a stream of tasks is faster with pages that exist.
  static constexpr std::uint64_t kPromptBytes = std::uint64_t{32} << 20;

  // Is written by TaskTable::create() only.
  struct alignas(base::kCacheLine) Header {
    static Header of(const TableShape& shape) noexcept { return {.shape = shape, .bytes = TaskTableLayout::bytes(shape)}; }
    friend bool operator==(const Header&, const Header&) noexcept = default;
    std::uint64_t magic = kMagic;
    std::uint32_t version = kVersion;
    TableShape shape;
    std::uint64_t bytes = 0;
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
    atomic<std::uint64_t> identity;  // the client's process, 0: none
  };
  using Entry = TaskEntry<A>;

  // The shared words, a line each.
  enum class SharedWord : std::uint8_t { kFreeCursor, kSpace, kClosed, kNotifyOn, kEpoch, kReadyCursors, kCount };

  static_assert(sizeof(Header) == base::kCacheLine && sizeof(Bits) == base::kCacheLine &&
                sizeof(Line<std::uint32_t>) == base::kCacheLine);
  static_assert(sizeof(Worker) == base::kCacheLine && sizeof(Entry) == 2 * base::kCacheLine);
  static_assert(sizeof(ReadyBits) == base::kCacheLine);

  TaskTableLayout(void* table, const TableShape& s) noexcept
      : memory(static_cast<std::byte*>(table)),
        shape(s),
        free(sizeof(Header)),
        ready(free + words(s.entries) * sizeof(Bits)),
        submitted(ready + words(s.entries) * sizeof(ReadyBits)),
        sleeping(submitted + base::align_up(s.entries * sizeof(atomic<std::uint64_t>), base::kCacheLine)),
        lines(sleeping + words(s.workers) * sizeof(Bits)),
        clients(lines + static_cast<std::uint64_t>(SharedWord::kCount) * base::kCacheLine),
        workers(clients + s.clients * sizeof(Line<std::uint32_t>)),
        entries(workers + s.workers * sizeof(Worker)),
        areas(base::align_up(entries + s.entries * sizeof(Entry), kPage) + kPage),
        guarded(area_alignment(s) == kPage && s.entries <= kMostGuarded),
        output_offset(base::align_up(s.max_input, area_alignment(s)) + (guarded ? kPage : 0)),
        area_bytes(output_offset + base::align_up(s.max_output, area_alignment(s)) + (guarded ? kPage : 0)),
        end(areas + base::align_up(area_bytes * s.entries, kPage)) {}

  // Bytes that a table of this shape takes, areas included; 0 if the shape is impossible.
  [[nodiscard]] static std::uint64_t bytes(const TableShape& shape) noexcept {
    if (shape.entries == 0 || shape.entries > kMaxEntries || shape.workers == 0 || shape.workers > TaskWord::kMaxWorkers ||
        shape.clients == 0 || shape.clients > TaskWord::kMaxClients || shape.max_input == 0 || shape.max_output == 0 ||
        shape.max_input > kMaxArea || shape.max_output > kMaxArea)
      return 0;
    return TaskTableLayout(nullptr, shape).end;
  }
  // The part at this offset, or a shared word.
  template <class T>
  [[nodiscard]] T* at(std::uint64_t offset) const noexcept {
    return reinterpret_cast<T*>(memory + offset);
  }
  template <class T>
  [[nodiscard]] atomic<T>* word(SharedWord which) const noexcept {
    return &at<Line<T>>(lines + static_cast<std::uint64_t>(which) * base::kCacheLine)->word;
  }
  static std::uint64_t words(std::uint32_t n) noexcept { return base::ceil_div(n, 64); }
  // Small tasks lie side by side. Large ones begin at a page, so that their pages can be given back, and end with a guard.
  static std::uint64_t area_alignment(const TableShape& shape) noexcept {
    return shape.max_input + shape.max_output <= kPage ? base::kCacheLine : kPage;
  }

  [[nodiscard]] std::byte* input(std::uint32_t entry) const noexcept { return memory + areas + entry * area_bytes; }
  [[nodiscard]] std::byte* output(std::uint32_t entry) const noexcept { return input(entry) + output_offset; }
  // Calls `guard(address, bytes)` for each guard page, which lies between two areas and is not used.
  template <class Guard>
  void for_each_guard(Guard guard) const {
    guard(memory + areas - kPage, kPage);
    for (std::uint32_t i = 0; guarded && i < shape.entries; ++i) {
      guard(output(i) - kPage, kPage);
      guard(input(i) + area_bytes - kPage, kPage);
    }
  }
  // Returns whether entries are so large that their pages are given back while they are free.
  [[nodiscard]] bool has_large_areas() const noexcept { return area_bytes > 2 * kKeptBytes; }
  // Each calls `purge(offset, bytes)`, from the table's beginning, for the pages that the entry may have used and need not
  // keep. Pre: the caller has acquired it.
  template <class Purge>
  void purge_input(std::uint32_t entry, Purge purge) const {
    purge_area(areas + entry * area_bytes, shape.max_input, purge);
  }
  template <class Purge>
  void purge_output(std::uint32_t entry, Purge purge) const {
    purge_area(areas + entry * area_bytes + output_offset, shape.max_output, purge);
  }
  template <class Purge>
  static void purge_area(std::uint64_t begin, std::uint64_t most, Purge purge) {
    if (most > kKeptBytes) purge(begin + kKeptBytes, base::align_up(most, kPage) - kKeptBytes);
  }

  std::byte* memory;
  TableShape shape;
  std::uint64_t free, ready, submitted, sleeping, lines, clients, workers, entries, areas;
  bool guarded;
  std::uint64_t output_offset, area_bytes, end;
};

}  // namespace freehold::process
