// SPDX-License-Identifier: MIT
// Which block an address lies in, and all blocks. A slot that a cache holds is in use here. The purger may take the bits of
// free slots for a moment.
//
//   Invariant: at rest, for_each_block() meets each block in use once, and block_around() finds it from each of its bytes.
//
// Any thread; the lock is that of direct blocks. It has no state. run_at() and large_bytes() are quick; the
// others are for checked mode and reports.
#pragma once
#include <cstddef>
#include <cstdint>

#include "freehold/alloc/large/direct_blocks.hpp"
#include "freehold/alloc/spans/arena.hpp"
#include "freehold/base/check.hpp"

namespace freehold::alloc {

template <sync::Atomics A, class Config, os::PageSource Pages>
class BlockMap {
 public:
  using Classes = typename Config::Classes;
  using ArenaType = Arena<A, Config, Pages>;

  constexpr BlockMap(ArenaType& arena, DirectBlocks<A, Config, Pages>& direct) noexcept : arena_(arena), direct_(direct) {}

  [[nodiscard]] bool in_arena(std::uintptr_t address) const noexcept {
    return (address - arena_.base()) >> ArenaType::kSpanShift < arena_.span_count();
  }
  // The first span of the run in use whose block begins at `address`; kNoSpan: none does. The system may have put a direct
  // block between the arena's chunks, since nothing is reserved there.
  [[nodiscard]] SpanIndex run_at(std::uintptr_t address) const noexcept {
    if (!in_arena(address)) return kNoSpan;
    const auto i = static_cast<SpanIndex>((address - arena_.base()) >> ArenaType::kSpanShift);
    const auto run = arena_.runs().run(i);
    return run.pages() != 0 && arena_.address(i) + run.colour() == address ? i : kNoSpan;
  }
  // Bytes of a block that is not a slot; 0 if there is no such block.
  [[nodiscard]] std::size_t large_bytes(const void* block) const noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    const SpanIndex i = run_at(address);
    return i == kNoSpan ? direct_.bytes_of(block) : arena_.runs().run(i).bytes();
  }
  // The block that the address lies in, in use or not; start is null: no block. Cost: up to 64 spans are looked at.
  [[nodiscard]] BlockPlace block_around(const void* pointer) const noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    if (!in_arena(address)) return direct_.around(pointer);
    const auto i = static_cast<SpanIndex>((address - arena_.base()) >> ArenaType::kSpanShift);
    const SizeClass c = arena_.slots().slot_class_of_span(i);
    if (!c.is_slot()) {
      const SpanIndex first = arena_.runs().run_around(i);
      if (first == kNoSpan) return direct_.around(pointer);  // the system may have put one between the arena's chunks
      return block_of_run(first);
    }
    const std::uint32_t number = arena_.geometry(c).index(static_cast<std::uint32_t>(address - arena_.address(i)));
    if (number >= arena_.pool(c).shape().slots) return {};
    const std::size_t bytes = Classes::slot_bytes(c);
    return {reinterpret_cast<void*>(arena_.address(i) + number * bytes), bytes, is_in_use(c, i, number)};
  }
  // Calls f(BlockPlace) for every block in use.
  template <class F>
  void for_each_block(F&& f) const noexcept {
    arena_.for_each_span([&](SpanIndex i, SizeClass c) {
      if (arena_.runs().run_pages(i) != 0) f(block_of_run(i));
      if (!c.is_slot()) return;
      const std::size_t bytes = Classes::slot_bytes(c);
      for (std::uint32_t number = 0; number < arena_.pool(c).shape().slots; ++number)
        if (is_in_use(c, i, number)) f(BlockPlace{reinterpret_cast<void*>(arena_.address(i) + number * bytes), bytes, true});
    });
    direct_.for_each(f);
  }
  // Reports the misuse of taking `block`, which is neither a slot nor the start of a large block, for one.
  [[gnu::cold, gnu::noinline]] void report(const void* block) const noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    base::HeapError error = base::HeapError::kForeignPointer;
    if (in_arena(address)) {
      const auto i = static_cast<SpanIndex>((address - arena_.base()) >> ArenaType::kSpanShift);
      error = arena_.runs().run_around(i) != kNoSpan ? base::HeapError::kInteriorPointer : base::HeapError::kDoubleFree;
    }
    if (direct_.around(block).start != nullptr) error = base::HeapError::kInteriorPointer;
    base::fatal(error, block);
  }

 private:
  [[nodiscard]] BlockPlace block_of_run(SpanIndex i) const noexcept {
    const auto run = arena_.runs().run(i);
    return {reinterpret_cast<void*>(arena_.address(i) + run.colour()), run.bytes(), true};
  }
  [[nodiscard]] bool is_in_use(SizeClass c, SpanIndex i, std::uint32_t number) const noexcept {
    const auto& word = arena_.words_of(c)[pool::word_index(i, number / 64)];
    return (word.load(std::memory_order_relaxed) >> number % 64 & 1) == 0 && number < arena_.pool(c).shape().slots;
  }

  ArenaType& arena_;
  DirectBlocks<A, Config, Pages>& direct_;
};

}  // namespace freehold::alloc
