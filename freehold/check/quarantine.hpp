// SPDX-License-Identifier: MIT
// A ring of raw blocks that were freed and are not reused yet, first in, first out. It lies apart from the blocks: what a
// program writes to them does not damage it. Externally serialised.
#pragma once
#include <cstddef>
#include <cstdint>

namespace freehold::check {

class Quarantine {
 public:
  struct Entry {
    void* raw = nullptr;
    std::size_t bytes = 0;
  };

  // `entries`: zeroed memory that stays; `capacity` is a power of two.
  void init(Entry* entries, std::size_t capacity) noexcept {
    entries_ = entries;
    capacity_ = capacity;
  }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::size_t size() const noexcept { return static_cast<std::size_t>(end_ - begin_); }
  [[nodiscard]] bool empty() const noexcept { return begin_ == end_; }
  [[nodiscard]] bool full() const noexcept { return end_ - begin_ == capacity_; }
  // Pre: not full.
  void push(const Entry& entry) noexcept { entries_[end_++ & (capacity_ - 1)] = entry; }
  // Pre: not empty.
  [[nodiscard]] const Entry& newest() const noexcept { return entries_[(end_ - 1) & (capacity_ - 1)]; }
  [[nodiscard]] const Entry& oldest() const noexcept { return entries_[begin_ & (capacity_ - 1)]; }
  // The oldest. Pre: not empty.
  [[nodiscard]] Entry pop() noexcept { return entries_[begin_++ & (capacity_ - 1)]; }

 private:
  Entry* entries_ = nullptr;
  std::size_t capacity_ = 0;
  std::uint64_t begin_ = 0, end_ = 0;
};

}  // namespace freehold::check
