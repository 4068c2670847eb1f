// SPDX-License-Identifier: MIT
// The engine's core on the simulated cores: its policies, and malloc and free as alloc/engine.cpp has them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "freehold/alloc/config.hpp"
#include "freehold/alloc/core.hpp"
#include "sim/engine/engine_atomics.hpp"

namespace freehold::sim {

// Real address space, without memory until it is touched. Counts what would be a call to the system.
class CountedPages {
 public:
  struct Mapping {
    std::uintptr_t begin;
    std::size_t bytes;
    const char* what;
  };

  CountedPages() = default;
  CountedPages(const CountedPages&) = delete;
  CountedPages& operator=(const CountedPages&) = delete;
  ~CountedPages();

  void* place(unsigned attempt, std::size_t bytes, std::size_t alignment) noexcept;
  bool map_at(void*, std::size_t) noexcept { return coherent::called_system(), true; }
  bool guard_at(void*, std::size_t) noexcept { return true; }
  void* map(std::size_t bytes) noexcept;
  bool unmap(void* address, std::size_t bytes) noexcept;
  bool purge(void* memory, std::size_t bytes) noexcept {  // no caller asks for zeros
    return coherent::called_system(), coherent::gave_back(memory, bytes), true;
  }
  void* remap(void*, std::size_t, std::size_t) noexcept { return nullptr; }
  bool move_onto(void*, void*, std::size_t) noexcept { return false; }
  void* move_out(void*, std::size_t, std::size_t) noexcept { return nullptr; }
  void advise_huge(void*, std::size_t, bool) noexcept { coherent::called_system(); }
  void populate(void*, std::size_t) noexcept {}
  void name(void*, std::size_t, const char*) noexcept {}
  bool is_locked(void*) noexcept { return false; }
  std::size_t address_limit() noexcept { return SIZE_MAX; }
  std::uint64_t most_mappings() noexcept { return 0; }

  [[nodiscard]] const std::vector<Mapping>& mappings() const noexcept { return mappings_; }

 private:
  std::vector<Mapping> mappings_;
};
static_assert(os::PageSource<CountedPages>);

// Time stands still: work that is due by the clock belongs to no pair.
struct StandingClock {
  static std::uint64_t now() noexcept { return 1; }
};

struct CountedConfig : alloc::NativeConfig {
  [[nodiscard]] static unsigned node() noexcept { return coherent::node(); }
};

class CountedEngine {
 public:
  using Core = alloc::Core<EngineAtomics, CountedConfig, CountedPages, StandingClock>;
  using Cache = Core::Cache;
  using Classes = alloc::NativeConfig::Classes;

  // Throws std::runtime_error if there is too little address space.
  explicit CountedEngine(unsigned cores);

  [[nodiscard]] Core& core() noexcept { return core_; }
  [[nodiscard]] const CountedPages& pages() const noexcept { return pages_; }

  [[nodiscard]] void* allocate(Cache& cache, std::size_t bytes) noexcept {
    if (bytes > Classes::kMaxBytes) {
      bool zero = false;
      return core_.large().allocate_large(&cache, bytes, 1, zero);
    }
    const alloc::SizeClass c = Classes::class_of(bytes);
    void* const slot = cache.pop(c);
    return slot != nullptr ? slot : core_.refill(cache, c);
  }
  void deallocate(Cache& cache, void* block) noexcept {
    const alloc::SizeClass c = class_of_block(block);
    if (!c.is_slot())
      core_.free_large(&cache, block);
    else if (!cache.push(c, block))
      core_.drain(cache, c, block);
  }

  // Returns whether nothing is in use and the engine's invariants hold; at rest.
  [[nodiscard]] bool is_empty_and_sound() noexcept;
  // Describes what lies at the address, for the eye.
  [[nodiscard]] std::string_view object_at(std::uintptr_t address) const noexcept;
  // The address within the engine's own object; -1 outside of it.
  [[nodiscard]] std::ptrdiff_t offset_in_core(std::uintptr_t address) const noexcept;

 private:
  [[nodiscard]] alloc::SizeClass class_of_block(const void* block) noexcept {
    const auto& arena = core_.arena();
    const std::size_t span = (reinterpret_cast<std::uintptr_t>(block) - arena.base()) >> alloc::NativeConfig::kSpanShift;
    return alloc::SizeClass{span < arena.span_count() ? arena.span_classes()[span].load(std::memory_order_relaxed)
                                                      : std::uint32_t{0}};
  }

  CountedPages pages_;
  alignas(4096) Core core_;
};

}  // namespace freehold::sim
