// SPDX-License-Identifier: MIT
// Zeroed memory for a pool and its bookkeeping: pages of the system, huge ones where that pays; the heap for what is less
// than a page. Owner: the object that holds it; freed by its destructor.
// Errors: std::bad_alloc. Cost: one or two system calls from a page on.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>

#include "freehold/base/bits.hpp"
#include "freehold/base/check.hpp"

namespace freehold::pool {

class Memory {
 public:
  // When huge pages are asked for; later: by advise_huge().
  enum class Huge : std::uint8_t { kAtOnce, kLater };

  Memory() noexcept = default;
  // Address space only, however large; commit() makes it usable piece by piece.
  [[nodiscard]] static Memory reserved(std::size_t bytes, std::size_t alignment, Huge huge = Huge::kAtOnce) {
    Memory memory;
    if (!memory.reserve(bytes, alignment, huge)) base::out_of_memory();
    return memory;
  }
  // Usable at once.
  Memory(std::size_t bytes, std::size_t alignment, Huge huge = Huge::kAtOnce) {
    if (!take(bytes, alignment, huge)) base::out_of_memory();
  }
  Memory(Memory&& other) noexcept { swap(other); }
  Memory& operator=(Memory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Memory() {
    if (start_ != nullptr) give_back();
  }

  [[nodiscard]] void* start() const noexcept { return start_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] bool is_pages() const noexcept { return mapped_; }

  // Makes [from, end) of reserved memory usable, which parts of it may be already. False: there is no memory.
  [[nodiscard]] bool commit(std::size_t from, std::size_t end) const noexcept;

  static constexpr std::size_t kHugePage = std::size_t{2} << 20;
  // Asks for huge pages from the first whole one at or after `from` on.
  void advise_huge(std::size_t from) const noexcept;

 private:
  // False: there is no memory, and nothing was taken.
  [[nodiscard]] bool take(std::size_t bytes, std::size_t alignment, Huge huge) noexcept;
  [[nodiscard]] bool reserve(std::size_t bytes, std::size_t alignment, Huge huge) noexcept;
  void give_back() noexcept;

  void swap(Memory& other) noexcept {
    std::swap(start_, other.start_);
    std::swap(bytes_, other.bytes_);
    std::swap(alignment_, other.alignment_);
    std::swap(mapped_, other.mapped_);
  }

  void* start_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t alignment_ = base::kCacheLine;
  bool mapped_ = false;
};

// `count` objects of T whose zero bytes are a valid initial value, as those of integers and of atomics of integers are.
template <class T>
class ZeroedArray {
 public:
  ZeroedArray() noexcept = default;
  explicit ZeroedArray(std::size_t count) : memory_(checked_bytes(count), alignof(T)), size_(count) {}

  [[nodiscard]] T& operator[](std::size_t i) const noexcept { return data()[i]; }
  [[nodiscard]] T* data() const noexcept { return static_cast<T*>(memory_.start()); }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  static std::size_t checked_bytes(std::size_t count) {
    if (count > ~std::size_t{0} / sizeof(T)) base::out_of_memory();
    return count * sizeof(T);
  }

  Memory memory_;
  std::size_t size_ = 0;
};

}  // namespace freehold::pool
