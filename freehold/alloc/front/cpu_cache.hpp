// SPDX-License-Identifier: MIT
// One cache per CPU instead of one per thread, for programs with very many threads: cached memory does not grow with their
// number, at about twice the price of an operation. The same arrays of slot addresses, popped and pushed by
// restartable sequences (os/rseq.hpp); the slow paths run as ordinary code, one sequence per slot.
//
//   Invariant, for each stack: array[0] == nullptr, entries in array[1 … top), top <= limit. Bytes cached per CPU are at
//   most kCpuBinBytes (or one slot) for each class.
//
// Any thread with a registered rseq area. A thread may change CPUs between any two steps; nothing depends on which.
#pragma once
#include <cstddef>
#include <new>

#include "freehold/alloc/size_classes.hpp"
#include "freehold/os/cpu.hpp"
#include "freehold/os/pages.hpp"
#include "freehold/os/rseq.hpp"

namespace freehold::alloc {

template <class CoreType, class Classes>
class CpuCaches {
 public:
  static constexpr unsigned kMaxSlots = 64;
  static constexpr std::size_t kCpuBinBytes = 8 * 1024;
  static constexpr unsigned kBatch = 32;

  constexpr CpuCaches() noexcept = default;

  // Lays out the stacks of every possible CPU. False: no memory. Not thread-safe.
  template <os::PageSource Pages>
  [[nodiscard]] bool init(CoreType& core, Pages& pages) noexcept {
    static_assert(area_bytes() <= std::size_t{1} << os::kCpuShift);
    const unsigned cpus = os::possible_cpus();
    if (cpus == 0) return false;
    char* area = static_cast<char*>(pages.map(std::size_t{cpus} << os::kCpuShift));
    if (area == nullptr) return false;
    for (unsigned cpu = 0; cpu < cpus; ++cpu) {
      auto* stacks = reinterpret_cast<os::CpuStack*>(area + (std::size_t{cpu} << os::kCpuShift));
      auto** array = reinterpret_cast<void**>(stacks + Classes::kCount);
      for (const SizeClass c : AllClasses<Classes>{}) {
        new (stacks + c.index()) os::CpuStack{array + 1, array + 1 + capacity(c)};
        array += 1 + capacity(c);
      }
    }
    stacks_ = reinterpret_cast<os::CpuStack*>(area);
    core_ = &core;
    return true;
  }

  [[nodiscard]] bool ready() const noexcept { return stacks_ != nullptr; }

  // A slot of class c from this CPU's stack; null: it is empty.
  [[nodiscard]] void* pop(SizeClass c) noexcept { return os::rseq_pop(stacks_ + c.index()); }
  // False: this CPU's stack is full.
  [[nodiscard]] bool push(SizeClass c, void* slot) noexcept { return os::rseq_push(stacks_ + c.index(), slot); }

  // The slots that a refill brings.
  [[nodiscard]] static constexpr std::size_t batch(SizeClass c) noexcept { return capacity(c) < 2 ? 1 : capacity(c) / 2; }
  // A slot of class c when pop() found none. Null: out of memory.
  [[nodiscard]] void* refill(SizeClass c) noexcept {
    void* slots[kBatch];
    std::size_t n = core_->take_batch(c, slots, batch(c), os::rseq_cpu());
    if (n == 0) return nullptr;
    void* const mine = slots[--n];
    std::size_t stored = 0;
    while (stored < n && push(c, slots[stored])) ++stored;
    if (stored < n) core_->give_batch(c, slots + stored, n - stored);
    return mine;
  }

  // Takes a slot that push() had no room for.
  void drain(SizeClass c, void* slot) noexcept {
    void* slots[kBatch + 1] = {slot};
    std::size_t n = 1;
    while (n <= batch(c)) {
      void* other = pop(c);
      if (other == nullptr) break;
      slots[n++] = other;
    }
    core_->give_batch(c, slots, n);
  }

  // Empties the stacks of the CPU that this runs on.
  void flush() noexcept {
    for (const SizeClass c : AllClasses<Classes>{})
      while (void* slot = pop(c)) core_->give_batch(c, &slot, 1);
  }

 private:
  [[nodiscard]] static constexpr unsigned capacity(SizeClass c) noexcept {
    const std::size_t n = kCpuBinBytes / Classes::slot_bytes(c);
    return n > kMaxSlots ? kMaxSlots : (n < 1 ? 1 : static_cast<unsigned>(n));
  }
  static constexpr std::size_t area_bytes() noexcept {
    std::size_t bytes = Classes::kCount * sizeof(os::CpuStack);
    for (const SizeClass c : AllClasses<Classes>{}) bytes += (1 + capacity(c)) * sizeof(void*);
    return bytes;
  }
  static_assert(kMaxSlots / 2 <= kBatch);

  os::CpuStack* stacks_ = nullptr;  // CPU 0's
  CoreType* core_ = nullptr;
};

}  // namespace freehold::alloc
