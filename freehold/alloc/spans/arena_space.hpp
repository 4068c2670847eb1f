// SPDX-License-Identifier: MIT
// The arena's address space: finds one range where nothing else is mapped, and maps tables and memory in it as they grow.
//
// The tables come first, the memory behind them. Nothing is reserved: each table and the memory grow in place and are mapped
// when they are needed. So limits (RLIMIT_AS, strict overcommit, mlockall) count what is used, whenever they are set.
//
//   Invariant: every table is mapped for the first `spans_` spans, and one entry more, since searches and merges look one
//              further; a page that two tables share belongs to the later one, which is mapped from the start.
//
// Externally serialised. Errors: false when the system refuses; pages mapped by then stay for the next attempt.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "freehold/base/bits.hpp"
#include "freehold/os/pages.hpp"

namespace freehold::alloc {

template <class Config, os::PageSource Pages>
class ArenaSpace {
 public:
  constexpr ArenaSpace() noexcept = default;

  // --- before init() -------------------------------------------------------------------------------------------------

  // A table with an entry of `bytes` for every 2^shift spans; returns its number. Tables lie in the order of the calls,
  // without gaps between those that follow a call with `joined`.
  unsigned add_table(std::size_t bytes, unsigned shift, std::size_t entries, bool joined = false) noexcept {
    Table& table = tables_[count_];
    table = {joined ? end_ : base::align_up(end_, Config::kPageBytes), bytes, entries, shift, 0};
    end_ = table.offset + bytes * entries;
    return count_++;
  }

  // Finds a place for the tables and for `memory_bytes` of memory, and maps what no span needs. False: no place, or no
  // memory; nothing stays.
  [[nodiscard]] bool init(Pages& pages, std::size_t memory_bytes) noexcept {
    pages_ = &pages;
    const std::size_t tables = base::align_up(end_, Config::kPageBytes);
    const std::size_t memory = base::align_up(tables + 2 * Config::kPageBytes, Config::kBaseAlignment);
    for (unsigned attempt = 0;; ++attempt) {
      start_ = static_cast<char*>(pages.place(attempt, memory + memory_bytes, Config::kBaseAlignment));
      if (start_ == nullptr) return false;
      spans_ = 0;
      if (map_tables(0)) break;
      for (unsigned t = 0; t < count_; ++t) {
        if (tables_[t].mapped != 0) (void)pages.unmap(first_page(t), tables_[t].mapped);
        tables_[t].mapped = 0;
      }
    }
    memory_ = start_ + memory;
    // A page without access on each side of the tables, and before the first block. Advice: something may be there.
    for (char* const guard : {start_ - Config::kPageBytes, start_ + tables, memory_ - Config::kPageBytes})
      (void)pages.guard_at(guard, Config::kPageBytes);
    return true;
  }

  [[nodiscard]] void* table(unsigned t) const noexcept { return start_ + tables_[t].offset; }
  [[nodiscard]] char* memory() const noexcept { return memory_; }

  // --- growing -------------------------------------------------------------------------------------------------------

  // Maps the tables for the first `spans` spans.
  [[nodiscard]] bool grow_tables(std::size_t spans) noexcept {
    if (spans <= spans_) return true;
    const std::size_t step = base::align_up(spans, std::size_t{Config::kTableStepSpans});
    if (map_tables(step)) {
      spans_ = step;
      return true;
    }
    return map_tables(spans);
  }
  // Maps `bytes` of memory at `offset`: readable, writable, zero.
  [[nodiscard]] bool map_memory(std::size_t offset, std::size_t bytes) noexcept {
    if (!pages_->map_at(memory_ + offset, bytes)) return false;
    pages_->name(memory_ + offset, bytes, "freehold heap");
    mapped_memory_ += bytes;
    return true;
  }

  // The reverse. False: the system cannot, and it stays.
  [[nodiscard]] bool unmap_memory(std::size_t offset, std::size_t bytes) noexcept {
    if (!pages_->unmap(memory_ + offset, bytes)) return false;
    mapped_memory_ -= bytes;
    return true;
  }

  [[nodiscard]] std::size_t memory_bytes() const noexcept { return mapped_memory_; }
  [[nodiscard]] std::size_t table_bytes() const noexcept {
    std::size_t sum = 0;
    for (unsigned t = 0; t < count_; ++t) sum += tables_[t].mapped;
    return sum;
  }

 private:
  static constexpr unsigned kMaxTables = 20;

  struct Table {
    std::size_t offset = 0, bytes = 0, entries = 0;
    unsigned shift = 0;
    std::size_t mapped = 0;  // bytes from the first page on
  };

  [[nodiscard]] char* first_page(unsigned t) const noexcept {
    return start_ + base::align_down(tables_[t].offset, Config::kPageBytes);
  }

  [[nodiscard]] bool map_tables(std::size_t spans) noexcept {
    // Goes from the last to the first: the page that two share is the later one's.
    for (unsigned t = count_; t-- > 0;) {
      Table& table = tables_[t];
      const std::size_t used = std::min(table.entries, ((spans + (std::size_t{1} << table.shift) - 1) >> table.shift) + 1);
      const char* const limit = t + 1 < count_ ? first_page(t + 1) : start_ + base::align_up(end_, Config::kPageBytes);
      const auto end = std::min(base::align_up(table.offset + used * table.bytes, Config::kPageBytes),
                                static_cast<std::size_t>(limit - start_));
      const std::size_t begin = base::align_down(table.offset, Config::kPageBytes) + table.mapped;
      if (end <= begin) continue;
      if (!pages_->map_at(start_ + begin, end - begin)) return false;
      pages_->name(start_ + begin, end - begin, "freehold metadata");
      table.mapped += end - begin;
    }
    return true;
  }

  Pages* pages_ = nullptr;
  char* start_ = nullptr;
  char* memory_ = nullptr;
  Table tables_[kMaxTables]{};
  unsigned count_ = 0;
  std::size_t end_ = 0;  // end of the tables, as an offset
  std::size_t spans_ = 0;
  std::size_t mapped_memory_ = 0;
};

}  // namespace freehold::alloc
