// SPDX-License-Identifier: MIT
// The probe's memory: which calls are sampled, and where samples go.
//
// A thread counts its calls down to the next sample; the gap is drawn again each time and its mean follows the rate of
// calls, so that a thread records about every millisecond. While a thread is new, its gaps grow slowly. If each sample
// doubled them, the last one would stand for half of a short burst of allocations. One sample would then decide how much
// seems to be live: survivors of one block in ten came out up to ten times too many, or none. The end of a sampled block is
// known by SampledBlocks. Blocks that share cache lines are found apart: for some milliseconds at a time every call in a few
// pages is recorded, then in others.
//
// For the question of memory (FREEHOLD_PROBE_SAMPLE=bytes) a thread counts bytes instead of calls: one sample among many
// small blocks would else be a larger one, now and then, and stand for as many of its size. A block that is larger than any
// gap is recorded in any case and stands for itself, as do blocks from kLargeBytes on in either way of counting.
//
// For a history that is played again (FREEHOLD_PROBE_SAMPLE=all) every block is recorded with its end, and no stack.
//
// Waits for the program's own locks are sampled by their length: each millisecond of waiting in the whole process is as
// likely to be chosen as any other, so that a sample's cost, which a lock's holder may have to bear, is spent seldom enough.
//
// Any thread; takes memory from the system alone, keeps errno. Unsampled calls: a decrement, two hashes, a look at the
// filter of SampledBlocks. Sampled ones: 2-10 us, most of it for the stack.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "freehold/sync/atomics.hpp"
#include "tools/doctor/probe/sampled_blocks.hpp"
#include "tools/doctor/probe/trace_format.hpp"

namespace freehold::doctor::probe {

inline constexpr unsigned kWatchedBits = 6;  // one page in 64 is watched

// The clocks of a thread that only a system call tells.
struct SlowClocks {
  std::uint64_t ticks;  // when they were read; 0: they were not
  std::uint64_t cpu_ns;
  std::uint64_t sleeps;
};

// Counts one kind of call down to its next sample. Some calls before it the slow clocks are read: a call right after system
// calls would take several times as long as one among others.
struct Countdown {
  std::int64_t left;    // until the clocks are to be read, if some are left behind that; else until the sample
  std::int64_t behind;  // from there to the sample
  SlowClocks clocks;
  std::int64_t gap;       // what it was drawn as
  std::int64_t interval;  // mean of the gaps
  unsigned early;         // samples at this interval that came sooner than wanted
  std::uint64_t last_ticks;
  std::uint64_t calls;  // until the last sample
};

struct Thread {
  Countdown allocations, frees;  // zero at first: the first call is sampled, which sets the thread up
  bool inside;                   // a call within a call, or of the probe itself: not recorded
  bool ended;
  std::uint32_t id;
  std::uint32_t generation;  // of the file; a child of fork begins another one
  std::uint32_t page_tokens;
  unsigned samples_at_interval;  // early ones of allocations, before the interval is doubled
  std::uint64_t page_epoch;
  std::uint64_t random;
  std::uint64_t probe_ticks;
  std::size_t all_from;  // blocks from this size on are recorded in any case, and do not count down
  std::byte* extent;
  std::byte* cursor;
  std::byte* end;
};

extern constinit thread_local Thread t_thread;
extern constinit SampledBlocks<sync::NativeAtomics, 18, 3> g_sampled;
extern constinit std::atomic<std::uint64_t> g_epoch;  // which pages are watched

extern constinit std::size_t g_bytes_mask;  // all bits, where bytes are counted; none, where calls are
extern constinit bool g_all;                // every block is recorded, and its end

// Returns how far a call takes the countdown.
[[nodiscard]] inline std::size_t step_of(std::size_t bytes) noexcept {
  return 1 + ((bytes + counted_bytes(0) - 1) & g_bytes_mask);
}
[[nodiscard]] inline bool is_watched(const void* block) noexcept {
  const std::uint64_t page = reinterpret_cast<std::uintptr_t>(block) >> 12;
  return mix(page ^ g_epoch.load(std::memory_order_relaxed)) >> (64 - kWatchedBits) == 0;
}

// Begins the recording if FREEHOLD_PROBE_DIRECTORY says where; once. After that, is_on().
void start() noexcept;
[[nodiscard]] bool is_on() noexcept;
// Writes the calling thread's totals, at the end of the process.
void finish() noexcept;

// The clock of durations.
[[nodiscard]] std::uint64_t ticks() noexcept;

// Time of a call in which the thread did not run.
struct OffCpu {
  std::uint32_t waited_us;     // asleep by its own call; what it then waited for a CPU included
  std::uint32_t preempted_us;  // it never slept, but others had its CPU
};

// Reads the clocks for a sample that is some calls away. Pre: calls.behind > 0.
void get_ready(Countdown& calls) noexcept;

// A call that was measured: what the thread's clocks said before it, or a few calls before.
class Measured {
 public:
  Measured() noexcept;
  explicit Measured(const Countdown& calls) noexcept;
  void end() noexcept { duration_ = ticks() - ticks_; }
  [[nodiscard]] std::uint64_t began() const noexcept { return ticks_; }
  [[nodiscard]] std::uint64_t duration() const noexcept { return duration_; }
  // Soon after end().
  [[nodiscard]] OffCpu off_cpu() const noexcept;

 private:
  SlowClocks before_;
  std::uint64_t ticks_;
  std::uint64_t duration_ = 0;
};

// Records a sampled allocation and draws the next gap. Pre: `block` is not null.
void sampled_allocation(const Measured& call, void* block, std::size_t bytes) noexcept;
// The same for a free of which the duration is wanted.
void sampled_free(const Measured& call, void* block) noexcept;
// Records the end of a block, if its allocation was sampled. Before the block is freed.
void end_of_sampled(void* block) noexcept;
// Records what happens in a page that is watched.
void page_allocation(void* block, std::size_t bytes) noexcept;
void page_free(void* block) noexcept;
// Records, or leaves out, a wait from `began` to `ended` for `lock`, which the caller may now hold: so this is seldom slow.
void waited(WaitKind kind, const void* lock, std::uint64_t began, std::uint64_t ended) noexcept;

}  // namespace freehold::doctor::probe
