// SPDX-License-Identifier: MIT
// The process's sampled heap profile: which call stacks hold how many bytes, by estimates from few blocks
// (byte_sampler.hpp), now and when it was most. The allocator asks where it is slow anyway, and gives a sampled block a
// separate place whose free comes by; docs/heap-profile.md says how. Off until start(). Any thread. Cost of a sampled block:
// a call stack and a lock in its life, some microseconds.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "freehold/os/pages.hpp"
#include "freehold/profile/byte_sampler.hpp"
#include "freehold/profile/live_profile.hpp"
#include "freehold/profile/sample_table.hpp"
#include "freehold/sync/atomics.hpp"

namespace freehold::profile {

namespace [[gnu::visibility("hidden")]] profiler {
extern constinit std::atomic<std::uint64_t> g_mean;  // 0: off
extern constinit std::atomic<bool> g_started;        // once: the table is there. Stored before g_mean
extern constinit SampleTable<sync::NativeAtomics> g_table;
extern constinit thread_local ByteSampler t_sampler;
extern constinit thread_local bool t_own_memory;
}  // namespace profiler

inline constexpr std::size_t kPlaces = std::size_t{1} << 18;  // blocks at a time: 128 GiB at the default distance

// From now on there may be sampled blocks, with stacks of at most `depth` frames. Once the unwinder is prepared
// (os/call_stack.hpp). Again: nothing changes. False: no memory.
[[nodiscard]] bool prepare(os::Pages& pages, unsigned depth) noexcept;
// From now on one byte in `mean` is sampled. Once prepare() was called. Again: the distance changes.
void start(std::uint64_t mean) noexcept;
// No further block is sampled; those that are stay known until they are freed.
void stop() noexcept;

// Bytes; 0: off.
[[nodiscard]] inline std::uint64_t mean() noexcept {
  return profiler::g_mean.load(
      std::memory_order_acquire);  // pairs with the releases in prepare() and start(): the table is there
}
// Returns whether there may be sampled blocks.
[[nodiscard]] inline bool was_started() noexcept {
  return profiler::g_started.load(std::memory_order_acquire);  // as above
}
[[nodiscard]] inline ByteSampler& sampler() noexcept { return profiler::t_sampler; }

// While one exists, what its thread allocates is Freehold's own, such as what libc takes for a thread that the engine
// starts. It is not sampled: the site that happened to call malloc then would answer for it.
class OwnMemory {
 public:
  OwnMemory() noexcept : former_(profiler::t_own_memory) { profiler::t_own_memory = true; }
  ~OwnMemory() { profiler::t_own_memory = former_; }
  OwnMemory(const OwnMemory&) = delete;
  OwnMemory& operator=(const OwnMemory&) = delete;

 private:
  bool former_;
};
[[nodiscard]] inline bool is_own_memory() noexcept { return profiler::t_own_memory; }

// The origin (live_profile.hpp) of a block that a scope's heap gave. Pre: prepare() was called. Cost: O(names).
[[nodiscard, gnu::noinline]] std::uint32_t origin_in_heap(std::uint32_t stack, const char* name) noexcept;
// Pre: a sample had that number of a heap, which is not 0.
[[nodiscard]] const char* heap_name(std::uint32_t number) noexcept;

// Notes a block that the program does not know yet. `size`: what the sampler passed over for it. `weight`: that of its mark
// (mark_weights.hpp). `origin`: a stack's number, or origin_in_heap(). `home`: LivePlace's.
[[gnu::noinline]] void add(void* block, std::size_t bytes, std::size_t size, std::uint32_t origin, std::uint32_t weight = 1,
                           std::uint32_t home = 0) noexcept;
// Forgets a block that is about to be freed. Returns the size that it was sampled with, 0: it was not sampled; and the
// weight that its mark goes on with.
struct Forgotten {
  std::size_t size = 0;
  std::uint32_t weight = 1;
};
[[nodiscard, gnu::noinline]] Forgotten forget(const void* block) noexcept;
// That size; 0: the block is not sampled.
[[nodiscard, gnu::noinline]] std::size_t size_of(const void* block) noexcept;
// The block was resized where it is.
[[gnu::noinline]] void resize(const void* block, std::size_t bytes) noexcept;

// For a resize that may move the block: forgets its sample, and notes it again where the block stayed.
struct Former {
  Sample sample;
  bool is_sampled = false;
};
[[nodiscard]] Former take(const void* block) noexcept;
void put_again(const Former& former) noexcept;

// Writes the profile in the text form of docs/heap-profile.md; it takes its memory from `pages`. Allocates nothing by
// malloc. False: the system refused, errno says why.
[[nodiscard]] bool write(os::Pages& pages, int fd) noexcept;

void after_fork_in_child() noexcept;

}  // namespace freehold::profile
