// SPDX-License-Identifier: MIT
// The engine's numbers for a real machine, each with its unit and reason. The model tests use a Config of their own with a
// handful of tiny spans.
#pragma once
#include <cstddef>
#include <cstdint>

#include "freehold/alloc/large/run_cache.hpp"
#include "freehold/alloc/size_classes.hpp"
#include "freehold/alloc/spans/arena.hpp"
#include "freehold/alloc/spans/chunk_pool.hpp"
#include "freehold/alloc/spans/span.hpp"
#include "freehold/os/pages.hpp"
#include "freehold/os/rseq.hpp"
#include "freehold/slots/word_pool.hpp"

namespace freehold::alloc {

struct NativeConfig {
  using Classes = SizeClasses;
  using Orders = pool::WordPoolOrders;

  static constexpr unsigned kSpanShift = 16;  // 64 KiB: 4096 slots of 16 bytes are 64 words, one summary word
  static constexpr unsigned kWordsPerSpan = 64;
  static constexpr std::size_t kPageBytes = os::kLargestPageBytes;  // what tables are aligned to: any kernel's page fits
  [[nodiscard]] static std::size_t page_bytes() noexcept { return os::page_bytes(); }
  static constexpr std::size_t kBaseAlignment = std::size_t{1} << 30;
  // Spans of slots up to here lie in chunks of their own, under huge pages: larger slots leave page tails untouched, which
  // huge pages would fill.
  static constexpr std::size_t kSlotChunkMaxBytes = 2048;

  // Above, blocks have a mapping each while there are not many of these: in a chunk they would leave gaps that fit few
  // others.
  static constexpr std::size_t kMostRunBytes = std::size_t{1} << 20;
  // Wholly free spans of classes that become free spans at once, where a run would take clean memory: the longest such run.
  static constexpr unsigned kReclaimedForRuns = kMostRunBytes >> kSpanShift;

  using ChunkOrders = ChunkPoolOrders;
  using SpanOrders = ArenaOrders;
  using RunOrders = RunCacheOrders;

  // Growth. A chunk is mapped at once; its pages come when they are touched.
  static constexpr unsigned kChunkSpans = 64;                             // 4 MiB: a word of free bits
  static constexpr std::size_t kHugeAfterBytes = std::size_t{512} << 10;  // of small objects before huge pages are asked for
  static constexpr std::uint32_t kMaxExtentChunks = 32;                   // 128 MiB set aside for one kind at a time
  static constexpr std::size_t kTableStepSpans = 4096;  // tables grow for 256 MiB of memory at once: 2.8 MiB
  static constexpr unsigned kShards = 512;              // CPUs that work apart; more share

  // So much may be kept free, beside what was regretted: enough that a small program never purges, and a share that costs a
  // large one little. Measured: docs/benchmarks.md, giving memory back.
  static constexpr std::int64_t kKeepBytes = std::int64_t{2} << 20;
  static constexpr std::int64_t kKeepShare = 16;
  static constexpr std::int64_t kRegretBytes = std::int64_t{64} << 20;  // the most that regret adds for one thread

  // If the kernel limits the process (os/memory_limit.hpp), so many quarters of the room that is left may be kept free at
  // most. A program that fills 40 MiB with one size after the other has 801,000 faults at a limit of 100 MiB with one
  // quarter, 224,000 with two, 69,000 with three (65,000 without a limit).
  static constexpr std::int64_t kCeilingQuarters = 3;
  static constexpr std::int64_t kLeastKeptBytes = std::int64_t{256} << 10;

  // The memory node of the calling thread's CPU: memory that its threads used is looked for first.
  [[nodiscard]] static unsigned node() noexcept { return os::current_node(); }

  // True if a page, which the caller may read, is not all zeroes.
  [[nodiscard]] static bool is_written(const char* page) noexcept { return !os::is_zero(page, page_bytes()); }

  // Thread caches.
  static constexpr std::size_t kBinBytes = 64 * 1024;  // a bin's slots at most, except kMinSlots
  static constexpr unsigned kMinSlots = 8;             // slots of a bin that has grown: four blocks at once stay in it
  static constexpr unsigned kMaxSlots = 128;           // a bin's slots at most; half of it, one word, is a batch
  // The same of a bin that gives slots back and wants them again: as many as two threads that exchange blocks send at once.
  // Measured: docs/benchmarks-counts.md.
  static constexpr std::size_t kBurstBytes = 128 * 1024;
  static constexpr unsigned kBurstSlots = 1023;     // with the sentinel, the largest record
  static constexpr std::size_t kFirstBytes = 2048;  // a new bin
  static constexpr unsigned kFirstSlots = 32;
  static constexpr std::size_t kThreadBytes = 16 * 1024;   // every thread may cache this much
  static constexpr std::size_t kThreadMaxBytes = 4 << 20;  // and more from the common budget, up to here
  static constexpr std::size_t kBudgetStepBytes = 32 * 1024;
  static constexpr unsigned kReservedWords = 8;          // chunks of runs whose free spans threads keep, per CPU
  static constexpr unsigned kManyThreads = 256;          // per CPU; threads beyond share per-CPU caches
  static constexpr std::size_t kBudgetBytes = 16 << 20;  // the common budget on up to 64 CPUs; beyond, for each:
  static constexpr std::size_t kBudgetBytesPerCpu = kBudgetBytes / 64;  // eight blocks of 32 KiB
  [[nodiscard]] static constexpr std::size_t budget_bytes(unsigned cpus) noexcept {
    return cpus > 64 ? cpus * kBudgetBytesPerCpu : kBudgetBytes;
  }
};

}  // namespace freehold::alloc
