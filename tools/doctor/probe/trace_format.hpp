// SPDX-License-Identifier: MIT
// The file format between the probe, which writes it, and the analysis, which reads it. There is one file for each process,
// made of extents. One thread fills an extent with records. The probe maps the file, so that its records survive however the
// process ends.
//
//   file:    FileHeader, then extents of kExtentBytes
//   extent:  ExtentHeader, then records; `used` bytes of it are valid
//   record:  RecordHeader, its body, and for samples `depth` return addresses, innermost first
//
// Times are ticks of the CPU's clock; FileHeader says what a tick is. All fields are little-endian machine words.
#pragma once
#include <cstddef>
#include <cstdint>

namespace freehold::doctor {

inline constexpr std::uint64_t kTraceMagic = 0x35656361'72746866;  // "fhtrace5"
inline constexpr std::size_t kExtentBytes = std::size_t{64} << 10;
inline constexpr unsigned kMaxDepth = 48;
// Blocks from this size on are all recorded: there are few of them, and they decide what is held.
inline constexpr std::size_t kLargeBytes = std::size_t{64} << 10;

// Returns the bytes that a block counts for: a block without any counts, too.
[[nodiscard]] constexpr std::uint64_t counted_bytes(std::uint64_t asked) { return asked + 16; }

// Two readings of both clocks tell what a tick is.
struct ClockReading {
  std::uint64_t ticks;
  std::uint64_t ns;  // CLOCK_MONOTONIC
};

struct FileHeader {
  std::uint64_t magic;
  std::uint32_t pid;
  std::uint32_t parent;  // the process that forked this one while it was recorded; else 0
  ClockReading begin, last;
  std::uint64_t cpu_ns;                 // of the process, at `last`
  std::uint64_t extents;                // handed out, this header's place included
  std::uint64_t dropped;                // records that found no room
  std::uint64_t empty_call_ticks;       // what measuring one call costs by itself: to be taken off
  std::uint64_t fast_path_picoseconds;  // what the probe adds to a call that it does not sample
  std::uint64_t mapped_bytes;           // by calls of mmap() and the like, those inside libc and its malloc left out
  std::uint64_t mapping_ticks;          // in those calls, and in munmap()
  std::uint64_t is_by_bytes;            // 1: allocations' weights and totals are counted_bytes(), else calls
  std::uint64_t is_whole;               // 1: every block is recorded, with its end
};

struct ExtentHeader {
  std::uint32_t thread;  // the system's id
  std::uint32_t used;    // bytes of records
};

enum class RecordKind : std::uint16_t {
  kAllocate = 1,  // a sampled allocation
  kFree,          // the end of a block whose allocation was sampled
  kTimedFree,     // a sampled call of free, for its duration
  kPageAllocate,  // any allocation in a page that is watched, for blocks that share a line
  kPageFree,      // the end of any block in such a page
  kThread,        // a thread's totals so far; the latest counts
  kWait,          // a sampled wait in a call of the program's own
};

enum class WaitKind : std::uint8_t {
  kMutex,
  kReadLock,
  kWriteLock,
  kSpinLock,
  kCondition,
  kSemaphore,
  kFutexLock,  // a futex or a semaphore that is released by the threads that waited for it
  kFutexWait,  // a futex that another thread wakes
};
inline constexpr std::uint8_t kWaitKinds = 8;

// Waiting for work, rather than for somebody who holds something.
[[nodiscard]] constexpr bool is_idleness(WaitKind kind) {
  return kind == WaitKind::kCondition || kind == WaitKind::kSemaphore || kind == WaitKind::kFutexWait;
}

struct RecordHeader {
  RecordKind kind;
  std::uint16_t depth;  // return addresses behind the body
  std::uint32_t bytes;  // of the whole record, a multiple of 8
};

struct Sample {
  std::uint64_t ticks;  // when
  std::uint64_t block;
  std::uint64_t size;            // asked for; 0 for ends
  std::uint64_t weight;          // calls that this one stands for; of allocations perhaps bytes (FileHeader)
  std::uint32_t duration;        // ticks of the call
  std::uint32_t waited_us;       // of these, asleep by its own call
  std::uint32_t preempted_us;    // of these, without a CPU though it wanted one
  std::uint32_t end_is_watched;  // of an allocation: 0: its end will not be recorded
};

struct PageEvent {
  std::uint64_t ticks;
  std::uint64_t block;
  std::uint64_t size;
  std::uint64_t epoch;  // pages are watched for one epoch
};

struct Wait {
  std::uint64_t ticks;  // its beginning
  std::uint64_t lock;
  std::uint64_t duration;  // ticks
  double weight;           // waits that this one stands for
  std::uint64_t kind;      // WaitKind
};

struct ThreadTotals {
  std::uint64_t ticks;  // when
  std::uint64_t allocations;
  std::uint64_t frees;
  std::uint64_t cpu_ns;       // of the thread
  std::uint64_t probe_ticks;  // spent in recording
  std::uint64_t ended;        // 1: at its end
};

}  // namespace freehold::doctor
