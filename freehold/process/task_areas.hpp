// SPDX-License-Identifier: MIT
// The buffers of a task table: each entry's input and output area, the guard pages between them, and the pages that a free
// entry need not keep.
//
//   TaskAreas<A> areas(memory, shape);              // of a table, whose shape was checked
//   areas.input(entry), areas.output(entry)         // shape.max_input and shape.max_output bytes
//
// The areas lie at fixed places behind the entries, see TaskTableLayout. Nothing is read from the table to find them, so
// that a component that writes wildly cannot move one.
//
// Threads: any; nothing changes after construction.
#pragma once
#include <cstddef>
#include <cstdint>

#include "freehold/base/bits.hpp"
#include "freehold/process/task_table_layout.hpp"

namespace freehold::process {

template <class A>
class TaskAreas {
  using Layout = TaskTableLayout<A>;

 public:
  TaskAreas(void* table, const TableShape& shape) noexcept
      : layout_(shape), shape_(shape), areas_(static_cast<std::byte*>(table) + layout_.areas) {}

  [[nodiscard]] std::byte* input(std::uint32_t entry) const noexcept { return areas_ + entry * layout_.area_bytes; }
  [[nodiscard]] std::byte* output(std::uint32_t entry) const noexcept { return input(entry) + layout_.output_offset; }
  // Of input and output area together.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return layout_.area_bytes; }
  // Calls `guard(address, bytes)` for each guard page, which lies between two areas and is not used.
  template <class Guard>
  void for_each_guard(Guard guard) const {
    guard(areas_ - Layout::kPage, Layout::kPage);
    for (std::uint32_t i = 0; layout_.guarded && i < shape_.entries; ++i) {
      guard(output(i) - Layout::kPage, Layout::kPage);
      guard(input(i) + bytes() - Layout::kPage, Layout::kPage);
    }
  }

  // Whether entries are so large that their pages are given back while they are free.
  [[nodiscard]] bool are_large() const noexcept { return bytes() > 2 * kKeptBytes; }
  // Inputs and outputs from here on, in bytes, are given back by their client as soon as they are not needed. Below that the
  // supervisor does it later: a stream of tasks is faster with pages that exist.
  static constexpr std::uint64_t kPromptBytes = std::uint64_t{32} << 20;
  // Each calls `purge(offset, bytes)`, from the table's beginning, for the pages that the entry may have used and need not
  // keep. Pre: the caller has acquired it.
  template <class Purge>
  void purge_input(std::uint32_t entry, Purge purge) const {
    if (shape_.max_input > kKeptBytes)
      purge(layout_.areas + entry * bytes() + kKeptBytes, base::align_up(shape_.max_input, Layout::kPage) - kKeptBytes);
  }
  template <class Purge>
  void purge_output(std::uint32_t entry, Purge purge) const {
    if (shape_.max_output > kKeptBytes)
      purge(layout_.areas + entry * bytes() + layout_.output_offset + kKeptBytes,
            base::align_up(shape_.max_output, Layout::kPage) - kKeptBytes);
  }

 private:
  // Bytes of each input and output area that are kept. Used pages beyond them are given back when the entry was free for a
  // while.
  static constexpr std::uint64_t kKeptBytes = 64 * 1024;

  const Layout layout_;
  const TableShape shape_;
  std::byte* const areas_;
};

}  // namespace freehold::process
