// SPDX-License-Identifier: MIT
// Memory for the engine's own records: thread caches, their arrays, records of direct blocks. Powers of two from 64 bytes to
// 8 KiB, cut from chunks of pages; freed records stay in free lists for ever. So a record may be read without a fault after
// it was freed. Externally locked. Errors: null when the page source refuses.
#pragma once
#include <bit>
#include <cstddef>
#include <cstring>

#include "freehold/base/bits.hpp"
#include "freehold/os/pages.hpp"

namespace freehold::alloc {

template <os::PageSource Pages>
class Metadata {
 public:
  constexpr Metadata() noexcept = default;
  void attach(Pages& pages) noexcept { pages_ = &pages; }

  // At least `bytes` (at most 8 KiB) of zeroed memory, aligned to 64.
  [[nodiscard]] void* allocate(std::size_t bytes) noexcept {
    const unsigned k = kind(bytes);
    if (Free* block = free_[k]; block != nullptr) {
      free_[k] = block->next;
      std::memset(block, 0, size(k));
      return block;
    }
    if (left_ < size(k)) {
      void* chunk = pages_->map(kChunkBytes);
      if (chunk == nullptr) return nullptr;
      give_rest();
      next_ = static_cast<char*>(chunk);
      left_ = kChunkBytes;
      mapped_ += kChunkBytes;
    }
    void* block = next_;
    next_ += size(k);
    left_ -= size(k);
    return block;
  }
  void free(void* block, std::size_t bytes) noexcept {
    const unsigned k = kind(bytes);
    free_[k] = new (block) Free{free_[k]};
  }
  [[nodiscard]] std::size_t mapped_bytes() const noexcept { return mapped_; }

 private:
  struct Free {
    Free* next;
  };
  static constexpr unsigned kKinds = 8;  // 64 … 8192
  static constexpr std::size_t kChunkBytes = 256 * 1024;

  [[nodiscard]] static constexpr unsigned kind(std::size_t bytes) noexcept {
    return bytes <= 64 ? 0 : static_cast<unsigned>(std::bit_width(bytes - 1)) - 6;
  }
  [[nodiscard]] static constexpr std::size_t size(unsigned k) noexcept { return std::size_t{64} << k; }

  // The rest of a chunk is cut into the largest blocks that fit.
  void give_rest() noexcept {
    for (unsigned k = kKinds; k-- > 0;)
      while (left_ >= size(k)) {
        free(next_, size(k));
        next_ += size(k);
        left_ -= size(k);
      }
  }

  Pages* pages_ = nullptr;
  Free* free_[kKinds] = {};
  char* next_ = nullptr;
  std::size_t left_ = 0;
  std::size_t mapped_ = 0;
};

}  // namespace freehold::alloc
