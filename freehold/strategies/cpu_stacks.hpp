// SPDX-License-Identifier: MIT
// A small stack of free slots for each CPU over one pool that all share. Where the kernel has restartable sequences, a push
// or pop on the current CPU's stack takes no atomic instruction: a thread that is preempted or migrated within one starts
// over (os/rseq.hpp). Where it has none, the stacks are tagged ones with compare-exchange, and there is no pool below
// (roaming_stacks.hpp).
//
//   Invariant, with sequences: a free slot lies in one CPU's stack, or is free in the tree below, or a thread is on its way
//   between the two. A stack holds at most entries_ slots, so no more than CPUs * entries_ are out of the others' reach.
//
// Linearisation: where the sequence commits, or as lock_free_bitmap_tree.hpp. Any thread; lock-free. A thread may change
// CPUs between any two steps, and nothing depends on which. Nothing is kept for a thread, so a thread's end leaves nothing
// behind. Cost: some 14 instructions on the CPU's own lines; an atomic for each half of a stack, or each run of slots of one
// word. Bookkeeping: 1 bit a slot, and 8 bytes an entry for each CPU; without sequences 4 bytes a slot.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>

#include "freehold/os/cpu.hpp"
#include "freehold/os/rseq.hpp"
#include "freehold/pool/concept.hpp"
#include "freehold/pool/memory.hpp"
#include "freehold/pool/slots.hpp"
#include "freehold/strategies/lock_free_bitmap_tree.hpp"
#include "freehold/strategies/roaming_stacks.hpp"

namespace freehold::pool {

// One bounded stack of pointers for each CPU, by restartable sequences of the machine A. A simulated machine that has them
// brings its own, as A::CpuStacks:
//
//   available()   whether the calling thread may use them; the rest has this as a precondition
//   CpuSequences(entries)   makes the stacks, for so many pointers each; entries > 0. Errors: std::bad_alloc
//   pop()         takes the newest pointer of the current CPU's stack; null: it is empty
//   push(p)       puts p there; false: it is full
//
// Any thread; both are atomic with respect to the other threads of the CPU, and what was done before the push of a pointer
// is visible after its pop.
template <sync::Atomics A>
class CpuSequences {
 public:
  [[nodiscard]] static constexpr bool available() noexcept { return false; }
  explicit CpuSequences(unsigned) noexcept {}
  [[nodiscard]] static constexpr void* pop() noexcept { return nullptr; }
  [[nodiscard]] static constexpr bool push(void*) noexcept { return false; }
};

template <sync::Atomics A>
  requires requires { typename A::CpuStacks; }
class CpuSequences<A> : public A::CpuStacks {
 public:
  using A::CpuStacks::CpuStacks;
};

template <>
class CpuSequences<sync::NativeAtomics> {
 public:
  static constexpr unsigned kMaxEntries = 1024;

  [[nodiscard]] static bool available() noexcept { return os::rseq_available() && os::possible_cpus() > 0; }

  explicit CpuSequences(unsigned entries) : memory_(std::size_t{os::possible_cpus()} << os::kCpuShift, base::kCacheLine) {
    static_assert(sizeof(os::CpuStack) + (1 + kMaxEntries) * sizeof(void*) <= std::size_t{1} << os::kCpuShift);
    FREEHOLD_ASSERT(entries > 0 && entries <= kMaxEntries);
    auto* const area = static_cast<std::byte*>(memory_.start());
    for (std::size_t cpu = 0; cpu << os::kCpuShift < memory_.bytes(); ++cpu) {
      std::byte* const mine = area + (cpu << os::kCpuShift);
      auto** const array = reinterpret_cast<void**>(mine + sizeof(os::CpuStack));  // its first entry is the sentinel
      ::new (static_cast<void*>(mine)) os::CpuStack{array + 1, array + 1 + entries};
    }
    first_ = std::launder(reinterpret_cast<os::CpuStack*>(area));
  }

  [[nodiscard]] void* pop() noexcept { return os::rseq_pop(first_); }
  [[nodiscard]] bool push(void* pointer) noexcept { return os::rseq_push(first_, pointer); }

 private:
  Memory memory_;  // touched only where there is a stack
  os::CpuStack* first_;
};

// The orders are those of the tree and of the stacks, in the strategies of these names.
template <sync::Atomics A, class Contention>
class CpuStacksPool {
 public:
  explicit CpuStacksPool(const PoolShape& shape) : slots_(shape) {
    if (CpuSequences<A>::available())
      cached_.emplace(shape.slots, shards_of(shape));
    else
      roaming_.emplace(shape.slots, shards_of(shape));
  }

  [[nodiscard]] void* acquire() noexcept {
    contention_.operated();
    if (cached_) [[likely]] {
      void* slot = cached_->stacks.pop();
      if (slot == nullptr) [[unlikely]]
        slot = refill();
      return slot == nullptr ? nullptr : slots_.hand_out_at(slot);
    }
    const std::uint32_t slot = roaming_->take(contention_);
    return slot == Roaming::kNone ? nullptr : slots_.hand_out(slot);
  }

  void release(void* slot) noexcept {
    if (!slots_.take_back_at(slot)) return;
    contention_.operated();
    if (cached_) [[likely]] {
      if (!cached_->stacks.push(slot)) [[unlikely]]
        drain(slots_.number(slot), cached_->batch());
    } else {
      roaming_->put(slots_.number(slot), contention_);
    }
  }

  // Gives back what the current CPU's stack holds.
  void flush() noexcept {
    if (!cached_) return;
    if (void* slot = cached_->stacks.pop(); slot != nullptr) drain(slots_.number(slot), cached_->entries);
  }

  [[nodiscard]] std::size_t capacity() const noexcept { return slots_.count(); }
  [[nodiscard]] sync::Contention contention() const noexcept { return contention_.total(); }

 private:
  using Tree = FreeSlotTree<A>;
  using Roaming = RoamingStacks<ByCpu<A>, DistributedStackOrders{}>;

  struct Cached {
    // Half of the slots at most lie in stacks, if all CPUs fill theirs.
    Cached(std::size_t slots, unsigned cpus)
        : entries(static_cast<unsigned>(std::clamp<std::size_t>(slots / (2 * cpus), 1, kMaxEntries))),
          stacks(entries),
          below(slots) {}
    [[nodiscard]] unsigned batch() const noexcept { return (entries + 1) / 2; }

    static constexpr unsigned kMaxEntries = 64;
    unsigned entries;
    CpuSequences<A> stacks;
    Tree below;
  };

  // Takes a batch from below, one for the caller and the others for the current CPU, which may not stay the same.
  [[gnu::noinline]] void* refill() noexcept {
    auto taken = cached_->below.take_some(cached_->batch(), contention_);
    if (taken.bits == 0) return nullptr;
    const auto address = [&] { return slots_.address(taken.word * 64 + base::lowest_bit(taken.bits)); };
    void* const mine = address();
    taken.bits &= taken.bits - 1;
    for (; taken.bits != 0; taken.bits &= taken.bits - 1)
      if (!cached_->stacks.push(address())) break;
    if (taken.bits != 0) cached_->below.put_some(taken);
    return mine;
  }

  // Gives back the slot `number` and up to `more` from the current CPU's stack.
  [[gnu::noinline]] void drain(std::size_t number, unsigned more) noexcept {
    cached_->below.put_run(number, [&] {
      void* const slot = more-- > 0 ? cached_->stacks.pop() : nullptr;
      return slot == nullptr ? Slots::kNone : slots_.number(slot);
    });
  }

  // Written by the constructor only.
  Slots slots_;
  // Any thread; one of the two.
  std::optional<Cached> cached_;
  std::optional<Roaming> roaming_;
  alignas(base::kCacheLine) [[no_unique_address]] Contention contention_;
};

/// A small stack for each CPU by restartable sequences. It does not find the slots of other CPUs.
struct CpuStacks {
  static constexpr std::string_view kName = "cpu-stacks";
  static constexpr bool kFindsLast = false;
  static constexpr double kBookkeepingBytes = 4;
  static constexpr NoOrders kOrders{};
  template <sync::Atomics A, class Contention = sync::IgnoreContention, NoOrders O = kOrders>
  using Pool = CpuStacksPool<A, Contention>;
};

}  // namespace freehold::pool
