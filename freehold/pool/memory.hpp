// SPDX-License-Identifier: MIT
// Zeroed memory for a pool and its bookkeeping: pages of the system, huge ones where that pays; the heap for what is less
// than a page. Owner: the object that holds it; freed by its destructor.
// Errors: std::bad_alloc. Cost: one or two system calls from a page on.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include "freehold/base/bits.hpp"
#include "freehold/base/out_of_memory.hpp"
#include "freehold/os/pages.hpp"

namespace freehold::pool {

class Memory {
 public:
  // When huge pages are asked for; later: by advise_huge().
  enum class Huge : std::uint8_t { kAtOnce, kLater };

  Memory() noexcept = default;
  // Address space only, however large; commit() makes it usable piece by piece.
  [[nodiscard]] static Memory reserved(std::size_t bytes, std::size_t alignment, Huge huge = Huge::kAtOnce) {
    Memory memory;
    memory.alignment_ = alignment;
    memory.reserve(bytes, huge);
    return memory;
  }
  // Usable at once.
  Memory(std::size_t bytes, std::size_t alignment, Huge huge = Huge::kAtOnce)
      : alignment_(alignment < base::kCacheLine ? base::kCacheLine : alignment) {
    if (bytes < kPageWorth && alignment_ < kPageWorth) {
      bytes_ = base::align_up(bytes == 0 ? 1 : bytes, alignment_);
      start_ = ::operator new(bytes_, std::align_val_t{alignment_});
      std::memset(start_, 0, bytes_);
      return;
    }
    reserve(bytes, huge);
    if (!os::Pages::commit(start_, bytes_)) {
      os::Pages::release(start_, bytes_);
      mapped_ = false;
      base::out_of_memory();
    }
  }
  Memory(Memory&& other) noexcept { swap(other); }
  Memory& operator=(Memory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Memory() {
    if (mapped_)
      os::Pages::release(start_, bytes_);
    else if (start_ != nullptr)
      ::operator delete(start_, bytes_, std::align_val_t{alignment_});
  }

  [[nodiscard]] void* start() const noexcept { return start_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] bool is_pages() const noexcept { return mapped_; }

  // Makes [from, end) of reserved memory usable, which parts of it may be already. False: there is no memory.
  [[nodiscard]] bool commit(std::size_t from, std::size_t end) const noexcept {
    const std::size_t page = os::page_bytes();
    from = base::align_down(from, page);
    end = end < bytes_ ? base::align_up(end, page) : bytes_;
    return os::Pages::commit(static_cast<std::byte*>(start_) + from, end - from);
  }

  static constexpr std::size_t kHugePage = std::size_t{2} << 20;
  // Asks for huge pages from the first whole one at or after `from` on.
  void advise_huge(std::size_t from) const noexcept {
    from = base::align_up(from, kHugePage);
    const std::size_t end = base::align_down(bytes_, kHugePage);
    if (mapped_ && from < end) os::Pages::advise_huge(static_cast<std::byte*>(start_) + from, end - from);
  }

 private:
  static constexpr std::size_t kPageWorth = 4096;

  void reserve(std::size_t bytes, Huge huge) {
    const std::size_t page = os::page_bytes();
    if (bytes > ~std::size_t{0} - 2 * kHugePage) base::out_of_memory();
    bytes_ = base::align_up(bytes, page);
    if (alignment_ < page) alignment_ = page;
    if (bytes_ >= kHugePage && alignment_ < kHugePage) alignment_ = kHugePage;
    start_ = os::Pages::reserve(bytes_, alignment_);
    if (start_ == nullptr) base::out_of_memory();
    mapped_ = true;
    if (bytes_ >= kHugePage && huge == Huge::kAtOnce) advise_huge(0);
  }

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
