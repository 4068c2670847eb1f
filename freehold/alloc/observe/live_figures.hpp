// SPDX-License-Identifier: MIT
// Where the engine's figures lie, for readers outside the process: they read them from its memory while it runs, without
// stopping or signalling it. Only figures that the engine keeps as relaxed atomics anyway: the directory is filled once at
// the start, and no malloc or free knows of it. Of what takes a walk (size classes, threads) the directory has the places:
// LiveTables. Figures that take a lock (metadata) are not here; Core::stats() has them.
//
// A reader finds the directory by its mark in the writable data of the program or of libfreehold.so. The mark depends on the
// directory's address: no copy of it and no constant in a file looks like one.
//
// The layout is fixed for a version. Figures are appended; a reader skips those that it does not know. The mark and the
// version stay where they are for ever, so that a reader can name a version that it does not know.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace freehold::alloc {

inline constexpr std::uint32_t kLiveVersion = 3;
inline constexpr std::uint32_t kMostLiveEntries = 32;
inline constexpr std::size_t kLiveAlignment = 64;
inline constexpr std::size_t kMostLiveClasses = 96;

// X(name in the JSON of `freehold doctor attach`, if it is there; figure; what it is). Each is the sum of its entries;
// signed where a moment's sum may be negative, between two updates that belong together. docs/stats.md explains those
// that are shown.
// clang-format off
#define FREEHOLD_LIVE_FIGURES(X) \
  X(slot_bytes, kSlotBytes, "blocks up to 32 KiB, in use or in a thread's cache; up to 64 KiB of each thread's are counted late") \
  X(class_span_bytes, kClassSpanBytes, "spans of 64 KiB that these lie in") \
  X(returned_bytes, kReturnedBytes, "of those, pages that are given back to the system now") \
  X(run_bytes, kRunBytes, "blocks above 32 KiB, whole spans each") \
  X(free_dirty_bytes, kFreeDirtyBytes, "free spans that may hold pages") \
  X(direct_bytes, kDirectBytes, "blocks with a mapping each, above about 4 MiB") \
  X(kept_bytes, kKeptBytes, "mappings of freed blocks that are kept for the next") \
  X(purged_bytes, kPurgedBytes, "given back to the system since the start") \
  X(purge_calls, kPurgeCalls, "system calls that did") \
  X(span_claims, kSpanClaims, "spans given to a size class since the start") \
  X(span_returns, kSpanReturns, "wholly free spans taken back from one") \
  X(threads, kThreads, "that have a cache") \
  X(late_frees, kLateFrees, "frees after a thread's cache was gone") \
  X(limit_bytes, kLimitBytes, "`FREEHOLD_LIMIT_BYTES`; 0: none") \
  X(cache_room_bytes, kCacheRoomBytes, "what caches may still take of their common budget") \
  X(, kPeakThreads, "the most threads with a cache at once") \
  X(, kLockWaits, "times that a thread slept for one of the engine's locks") \
  X(, kRemoteFrees, "slots that threads which ended gave back to spans that another thread used last; LiveThreads has more") \
  X(, kArenaBase, "where the spans begin") \
  X(, kUntilLook, "by how much memory may grow until the next look at the kernel's limit; 0 from outside: the next slow call looks") \
  X(, kProfileDistance, "of the heap profile's samples; 0: off") \
  X(, kProfileRequest, "the first of a ProfileRequest (profile/live_profile.hpp), written from outside")
// clang-format on

enum class LiveFigure : std::uint32_t {
#define FREEHOLD_FIGURE(name, figure, text) figure,
  FREEHOLD_LIVE_FIGURES(FREEHOLD_FIGURE) kCount
#undef FREEHOLD_FIGURE
};

// `count` integers of `bytes` bytes each, `stride` bytes apart.
struct LiveEntry {
  LiveFigure figure;
  std::uint32_t bytes;
  std::uint32_t count;
  std::uint32_t stride;
  std::uint64_t address;
};

// Tells a reader where a thread's cache lies and what to read there: bytes from the record's begin. Integers of 8 bytes,
// unless it says else.
struct LiveThreads {
  std::uint64_t first;    // address of the pointer to the youngest
  std::uint64_t changes;  // address of the number of a ChangeCount: even and unchanged, the list was at rest
  std::uint32_t record_bytes;
  std::uint32_t next;           // a pointer; null: the last
  std::uint32_t thread;         // 4 bytes: the system's number; 0: unknown
  std::uint32_t granted_bytes;  // that the bins may hold
  std::uint32_t remote_frees;
  std::uint32_t tops;  // a pointer for each class: one past the newest entry of its array
  std::uint32_t bins;  // records of the classes' arrays
  std::uint32_t bin_stride;
  std::uint32_t bin_array;  // from a bin's begin: a pointer to the entry before the oldest; null: no array
  std::uint32_t bin_refills;
  std::uint32_t bin_drains;
  std::uint32_t bin_capacity;  // 2 bytes: entries
  std::uint32_t bin_marks;     // 2 bytes: entries that are no slots
  std::uint32_t unused;
};

// The figures of a size class are counted from these. A class is its index; class 0 is none.
struct LiveClasses {
  std::uint64_t past_refills, past_drains;  // addresses of integers by class: of threads that have ended
  std::uint64_t span_count;                 // address of the number of spans
  std::uint64_t span_classes;               // address of a byte for each span: its class
  // Two tables of the words of all spans: a bit for each slot, set when free. Slots from `few_words_from` bytes on have the
  // second.
  struct {
    std::uint64_t words;   // address
    std::uint64_t stride;  // bytes of one span's words
  } tables[2];
  std::uint32_t few_words_from;
  std::uint32_t span_bytes;
  std::uint32_t count;  // class 0 included
  std::uint32_t slot_bytes[kMostLiveClasses];
};

// Records are never unmapped: one that is read too late holds anything, but can be read.
struct LiveTables {
  std::uint32_t bytes;  // sizeof(LiveTables)
  std::uint32_t unused;
  LiveThreads threads;
  LiveClasses classes;
};

struct alignas(kLiveAlignment) LiveDirectory {
  // release: pairs with the order in which the reader copies, mark first; publishes the rest.
  std::atomic<std::uint64_t> mark[2];
  std::uint32_t version;
  std::uint32_t count;  // entries
  LiveEntry entries[kMostLiveEntries];
  LiveTables tables;
};
static_assert(sizeof(LiveEntry) == 24 && sizeof(LiveThreads) == 72 && sizeof(LiveTables) == 544);
static_assert(offsetof(LiveDirectory, version) == 16 && offsetof(LiveDirectory, entries) == 24);
static_assert(offsetof(LiveDirectory, tables) == 792);

// The two halves of the mark of a directory at `address`. Random numbers.
[[nodiscard]] constexpr std::uint64_t live_mark(unsigned half, std::uint64_t address) noexcept {
  return address ^ (half == 0 ? 0x9d1c5be2a7f34680U : 0x3b86e0f4c25d917aU);
}

}  // namespace freehold::alloc
