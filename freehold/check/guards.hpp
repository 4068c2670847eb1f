// SPDX-License-Identifier: MIT
// The process's guarded blocks: few allocations, chosen at random, get a page of their own (guard_slots.hpp), and a handler
// of SIGSEGV and SIGBUS reports the access that the processor refuses there, with the stacks of allocation and free. Then
// the process dies of the signal, as it would without; all other faults go to the handler that was there before. A program
// that installs its handler later takes the faults; if it calls ours as its former one, both work.
//
// The allocator asks is_guard_due() where it is slow anyway, and passes frees of is_guarded() blocks on.
// Threads: any. Cost when a block is chosen: two system calls and two stacks in its life, some microseconds.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "freehold/check/block.hpp"
#include "freehold/check/guard_sampler.hpp"
#include "freehold/check/guard_slots.hpp"
#include "freehold/os/pages.hpp"
#include "freehold/sync/atomics.hpp"

namespace freehold::check {

namespace [[gnu::visibility("hidden")]] guards {
extern constinit GuardSlots<sync::NativeAtomics, os::Pages> g_slots;
extern constinit std::atomic<std::uint32_t> g_rate;  // 0: off. Stored after g_slots is ready
extern constinit thread_local GuardSampler t_sampler;
}  // namespace guards

inline constexpr unsigned kGuardSlots = 256;          // blocks at a time: a megabyte of pages
inline constexpr unsigned kSlotsOfEveryCall = 4'096;  // where every allocation is chosen: programs that are tested

// From now on one allocation in `rate` is chosen. Once, before threads ask. False: no memory.
[[nodiscard]] bool start_guards(os::Pages& pages, std::uint64_t rate) noexcept;

// Memory without access elsewhere. The handler asks of which faults the addresses are there, and for a report of those.
// False: the address is there no more, and nothing was reported.
struct SealedMemory {
  bool (*contains)(const void* address);
  bool (*report)(const void* address);
};
void watch_sealed_memory(const SealedMemory& memory) noexcept;  // which stays for ever

// In the child of a fork: a thread that was at a report has not come along, and its end is not waited for.
void forget_reports() noexcept;

[[nodiscard]] inline bool guards_are_on() noexcept {
  return guards::g_rate.load(std::memory_order_relaxed) != 0;  // relaxed: a mode
}

// Returns whether every allocation is chosen.
[[nodiscard]] inline bool guards_are_on_always() noexcept {
  return guards::g_rate.load(std::memory_order_relaxed) == 1;  // relaxed: a mode
}

// Counts allocations of the calling thread. Whether one of them, the present one, is to be guarded.
[[nodiscard]] inline bool is_guard_due(std::uint32_t calls) noexcept {
  const std::uint32_t rate = guards::g_rate.load(std::memory_order_acquire);  // pairs with the release in start_guards()
  return rate != 0 && guards::t_sampler.is_due(rate, calls);
}

// Returns a block on a separate page; null: it is larger, or all slots are in use. `request` and `stack`: for
// guarded_contents(). Pre: is_guard_due() said so.
[[nodiscard, gnu::noinline]] void* allocate_guarded(std::size_t bytes, std::size_t alignment, const Request& request = {},
                                                    std::uint32_t stack = 0) noexcept;

// Returns whether the address is one of a guarded block, or around one.
[[nodiscard]] inline bool is_guarded(const void* address) noexcept {
  // Pairs with the release in start_guards().
  return guards::g_rate.load(std::memory_order_acquire) != 0 && guards::g_slots.contains(address);
}

// Frees a guarded block, and reports bad pointers and bytes that were written around it. errno is unchanged.
[[gnu::noinline]] void free_guarded(void* block) noexcept;

// The bytes of a guarded block that the program asked for; 0 if the pointer is bad, which is reported.
[[nodiscard, gnu::noinline]] std::size_t guarded_bytes(const void* block) noexcept;

// For checked mode, whose lock keeps frees of guarded blocks out.
//
// Returns the request of a guarded block; no bytes if no such block lives.
[[nodiscard]] Contents guarded_contents(const void* block) noexcept;
// Calls f(contents, block) for each that lives.
template <class F>
void for_each_guarded(F&& f) noexcept {
  guards::g_slots.for_each_live([&](const void* block) { f(guarded_contents(block), block); });
}
// Looks at the bytes around a guarded block, if it is one that lives; reports those that were written. Returns whether there
// were some.
bool look_at_guarded(const void* block) noexcept;

}  // namespace freehold::check
