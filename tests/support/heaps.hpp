// SPDX-License-Identifier: MIT
// Private heaps on a source that keeps a ledger: what was taken, what came back, and which take is refused.
#pragma once
#include <atomic>
#include <cstddef>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <type_traits>

#include "freehold/heap/private_heap.hpp"

namespace freehold::test {

class Ledger {
 public:
  static constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

  void* take(std::size_t bytes, std::size_t alignment) noexcept {
    const std::lock_guard guard(mutex_);
    const std::size_t number = asked_++;
    if (number == refuse_at || number >= refuse_from) return nullptr;
    void* const memory = engine_.take(bytes, alignment);
    if (memory == nullptr) return nullptr;
    out_.emplace(memory, Entry{bytes, alignment});
    ++takes_;
    bytes_ += bytes;
    return memory;
  }
  void give_back(void* memory, std::size_t alignment) noexcept {
    const std::lock_guard guard(mutex_);
    const auto found = out_.find(memory);
    if (found == out_.end() || found->second.alignment != alignment) {
      ++strays_;
      return;
    }
    bytes_ -= found->second.bytes;
    ++gives_;
    out_.erase(found);
    engine_.give_back(memory, alignment);
  }
  [[nodiscard]] bool has(const void* memory) noexcept {
    const std::lock_guard guard(mutex_);
    return out_.contains(const_cast<void*>(memory));
  }

  [[nodiscard]] std::size_t asked() const noexcept { return asked_; }
  [[nodiscard]] std::size_t takes() const noexcept { return takes_; }
  [[nodiscard]] std::size_t gives() const noexcept { return gives_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }    // taken and not given back
  [[nodiscard]] std::size_t strays() const noexcept { return strays_; }  // given back, but not taken, or otherwise aligned

  // Which takes are refused, counted from 0.
  std::size_t refuse_at = kNever;
  std::size_t refuse_from = kNever;

 private:
  struct Entry {
    std::size_t bytes, alignment;
  };
  heap::EngineSlabs engine_;
  std::mutex mutex_;
  std::map<void*, Entry> out_;
  std::size_t asked_ = 0, takes_ = 0, gives_ = 0, bytes_ = 0, strays_ = 0;
};

struct LedgerSlabs {
  [[nodiscard]] void* take(std::size_t bytes, std::size_t alignment) const noexcept {
    return ledger->take(bytes, alignment);
  }
  void give_back(void* block, std::size_t alignment) const noexcept { ledger->give_back(block, alignment); }
  [[nodiscard]] bool is_from(const void* block) const noexcept { return ledger->has(block); }
  Ledger* ledger;
};

using LedgerOwnerLockedHeap = heap::BasicOwnerLockedHeap<sync::NativeAtomics, heap::HeapGeometry, LedgerSlabs>;
using LedgerPrivateHeap = heap::BasicPrivateHeap<sync::NativeAtomics, heap::HeapGeometry, LedgerSlabs, heap::Registered>;

// For typed suites of both kinds, whatever their source.
struct HeapName {
  template <class H>
  static std::string GetName(int) {
    return std::is_same_v<H, heap::PrivateHeap> || std::is_same_v<H, LedgerPrivateHeap> ? "PrivateHeap" : "OwnerLockedHeap";
  }
};

inline constexpr std::size_t kSlabBytes = heap::Slab<sync::NativeAtomics, heap::HeapGeometry>::kBytes;
inline constexpr std::size_t kHeapPageBytes = heap::Slab<sync::NativeAtomics, heap::HeapGeometry>::kPageBytes;

}  // namespace freehold::test
