// SPDX-License-Identifier: MIT
// The engine's interface: a general-purpose allocator, an array of word pools over one arena. The exported symbols
// (freehold/malloc) and everything else that needs memory call these; docs/design.md tells the life of a malloc.
// Threads: any, at any time between the first instruction of the process and the last, in atexit handlers and in
// thread-local destructors too. Not async-signal-safe.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "freehold/alloc/observe/stats.hpp"

namespace freehold::alloc {

// A block of at least `bytes` bytes, aligned to 16 bytes, whatever the size. Returns nullptr and sets errno to ENOMEM when
// memory or address space is exhausted. Cost: 14 instructions from the thread's cache; one atomic per 64 slots otherwise.
[[nodiscard]] void* allocate(std::size_t bytes) noexcept;
// The same, zeroed; pages known to be zero are not written.
[[nodiscard]] void* allocate_zeroed(std::size_t bytes) noexcept;
// Makes memory of a block that the caller has, all or a part of it, read as zero: the pages of a large one of which little
// was written are given back.
void clear(void* block, std::size_t bytes) noexcept;
// The same, aligned to `alignment`, a power of two of any size up to a quarter of the arena.
[[nodiscard]] void* allocate_aligned(std::size_t alignment, std::size_t bytes) noexcept;
// Grows or shrinks a block, in place where possible; null acts as allocate. On failure the block is untouched.
[[nodiscard]] void* reallocate(void* block, std::size_t bytes) noexcept;
// Gives a block back. Null is ignored. A pointer that is not a block ends in fatal() where that is seen for nothing.
void deallocate(void* block) noexcept;
// The bytes that the block's owner may use: at least what was asked for; 0 for null.
[[nodiscard]] std::size_t usable_size(const void* block) noexcept;

// Fills blocks with `byte` when they are freed, and with its complement when they are allocated, except zeroed ones; 0 ends
// that. In force for the calling thread at once, for others from their next slow path on. Cost, while it is on: no caches.
void set_perturbation(std::uint8_t byte) noexcept;

// Gives every wholly free page back to the system now, the calling thread's cache included. Returns bytes released.
std::size_t trim() noexcept;
// For event loops, when there is nothing to do: the same, but quick when nothing is due, and other threads' work goes on.
// Returns bytes released.
std::size_t idle() noexcept;
// Returns whether moving a block would let its pages go (freehold/malloc.h). If so, the calling thread's next allocation of
// the size is a place for it. False for null, for blocks of a page or more, and for threads without a cache.
[[nodiscard]] bool is_worth_moving(const void* block) noexcept;
// Limits what blocks and the memory kept for them take together, in bytes; SIZE_MAX: no limit. Beyond it free memory goes
// back first, then requests fail with ENOMEM. What is in use already stays. Returns the former limit.
std::size_t set_limit(std::size_t bytes) noexcept;
// Calls `call(bytes in use, limit, context)` whenever the process is close to the kernel's limit of its memory after all
// free memory went back: in a thread that allocates, one call at a time, before its memory is taken. Null: no longer.
struct MemoryCallback {
  void (*call)(std::size_t used, std::size_t limit, void* context) = nullptr;
  void* context = nullptr;
};
void set_memory_callback(const MemoryCallback& callback) noexcept;
// The program is about to refuse itself calls to the system: from now on only mmap, munmap, mremap, madvise and futex are
// used. No thread that gives memory back is started any more, mappings get no names, and at the exit nothing is looked at.
// Any thread. Cost: two system calls, once.
void confine() noexcept;
// The calling thread is about to call vfork. Its child, which uses the thread's storage, may allocate.
void before_vfork() noexcept;
// The program is about to send this thread a signal. If it is the one that gives memory back, which answers none, it ends
// first. Any thread. Cost: two loads; waits for a step of that thread.
void before_signal(pid_t thread, long signal) noexcept;
// Fills `out` with a snapshot; figures of running threads may be some operations old. Cost: one pass over all spans.
void stats(Stats& out) noexcept;

}  // namespace freehold::alloc
