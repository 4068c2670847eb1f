// SPDX-License-Identifier: MIT
// The allocators that a trace is replayed through: the pools, the private heaps, Freehold's engine, the system's
// malloc, and the baseline, which has only the cost of the replay. Each operation is one virtual call, the same for all.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace freehold::cli::replay {

class Memory {
 public:
  virtual ~Memory() = default;
  // Null: there is no slot now.
  [[nodiscard]] virtual void* acquire() noexcept = 0;
  virtual void release(void* block) noexcept = 0;
};

enum class Kind : std::uint8_t { kBaseline, kMalloc, kEngine, kPool, kHeap };

struct Maker {
  std::string name;
  Kind kind = Kind::kPool;
  bool one_thread = false;  // for no more
  std::unique_ptr<Memory> (*make)(std::size_t slots, std::size_t bytes) = nullptr;
};

// In the order of the tables: the baseline and malloc first.
[[nodiscard]] const std::vector<Maker>& makers();

}  // namespace freehold::cli::replay
