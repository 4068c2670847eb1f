// SPDX-License-Identifier: MIT
/// @file
/// Freehold's C API beside malloc itself: is it active, give memory back, limit memory, statistics.
///
///     freehold_stats_t stats;
///     if (freehold_stats(&stats, sizeof stats) == 0 && stats.retained_bytes > kEnough) freehold_trim();
///
/// For C and C++. Link freehold::malloc or freehold::malloc_shared, or preload libfreehold.so. A program that also runs
/// without Freehold declares the functions weak, or looks them up with dlsym.
///
/// All functions: any thread, not in signal handlers. Units: bytes, except for counts.
#ifndef FREEHOLD_MALLOC_H
#define FREEHOLD_MALLOC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Options compiled into a program that cannot set its environment: define this variable, with C linkage and default
/// visibility, as a list of NAME:VALUE separated by commas. Names and values are those of the FREEHOLD_... variables of
/// docs/tuning.md in lower case; an environment variable that is set wins. Read once, before the first allocation. Example:
///
///     const char* freehold_options = "purge_delay_ms:100,huge_pages:off";
///
/// Under LD_PRELOAD the program must export it (-rdynamic, or -Wl,--export-dynamic-symbol=freehold_options).
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
extern const char* freehold_options;

/// Tells whether malloc in this process is Freehold's: it asks malloc for a block and looks which allocator made it.
/// @return 1 if it is Freehold's, 0 if it is another malloc's.
/// Cost: one allocation.
int freehold_is_active(void);

/// Gives all free memory back to the system now, including the calling thread's cache.
/// @return the bytes given back.
/// Cost: O(free spans), a system call for each contiguous range.
size_t freehold_trim(void);

/// Gives free memory back whose purge delay is over. For event loops that have nothing to do.
/// @return the bytes given back.
/// Cost: a few loads when nothing is due; otherwise a system call for each contiguous range.
size_t freehold_idle(void);

/// Tells whether moving a block elsewhere would help its page go back to the system: it lies on a page of which a quarter or
/// more is free, and there is room at a lower address. For programs that defragment their heap:
///
///     if (freehold_worth_moving(old)) {
///       void* moved = malloc(size);  // by the same thread, before it allocates anything else of this size
///       memcpy(moved, old, size);
///       free(old);
///     }
///
/// After 1, the calling thread's next malloc of the same size class returns that room. One pass over all blocks in any order
/// packs them; freehold_trim() then gives the pages back at once.
/// @param block  a block in use, or null
/// @return 1 if it is worth moving; 0 if not, if the block is null, takes a page or more, or is not Freehold's, and for
///         threads without a cache of their own (FREEHOLD_CACHE=cpu, checked mode).
/// Cost: some loads; for 1, about one atomic operation. Every 4,096th call of a class begins a pass over its spans again.
int freehold_worth_moving(const void* block);

/// In checked mode (FREEHOLD_CHECK=1, docs/hardening.md): looks at all blocks now, those that were freed and are not reused
/// included, and reports each one that is damaged on standard error. The first report ends the process (SIGABRT), unless
/// FREEHOLD_CHECK_ABORT=0 says otherwise. Other threads' calls of malloc and free wait until then.
/// @return how many blocks are damaged; 0 without checked mode.
/// Cost: O(blocks), and their freed bytes.
int freehold_check_all(void);

/// A limit that is none.
#define FREEHOLD_NO_LIMIT UINT64_MAX

/// Limits the memory of blocks together with the free memory that Freehold retains. Beyond the limit free memory goes back
/// first; then requests fail with ENOMEM (operator new: the new handler, then std::bad_alloc), and one line on standard
/// error says so, once. Existing blocks stay. FREEHOLD_LIMIT_BYTES sets the limit at the start.
/// @param bytes  the limit in bytes, or FREEHOLD_NO_LIMIT
/// @return the former limit in bytes, or FREEHOLD_NO_LIMIT.
size_t freehold_set_limit(size_t bytes);

/// Called when the process is close to the kernel's limit of its memory. May allocate and free; must return, and must not
/// throw: it runs in the middle of an allocation.
/// @param used_bytes   what the kernel counts against the limit, without pages of files
/// @param limit_bytes  the limit
/// @param context      as it was given
typedef void (*freehold_memory_callback)(size_t used_bytes, size_t limit_bytes, void* context);

/// Has `callback` called when 15/16 of the kernel's limit (memory.max and memory.high of the control group and its
/// ancestors, memory.limit_in_bytes of version 1, RLIMIT_AS, RLIMIT_DATA) are in use although all free memory went back, or
/// the group's processes stall for memory: a program that holds a cache can shed it before the kernel ends the program. The
/// call comes in whichever thread allocates, one at a time, again each time memory has grown by a step of 1 MiB or a 128th
/// of the limit.
/// @param callback  takes the former one's place; null: none any more
/// @param context   is handed to it
/// Cost: none until the limit is near, and none at all where there is no limit.
void freehold_on_memory_pressure(freehold_memory_callback callback, void* context);

/// The allocations and frees of the calling thread between freehold_count_begin() and freehold_count_end(). Later versions
/// append members and move none. Bytes are those of malloc_usable_size().
typedef struct freehold_count_t {
  size_t size;               ///< bytes of this struct that the library filled; the rest of the caller's struct is zero
  uint64_t allocations;      ///< calls that returned a block: malloc, calloc, new, ..., and each realloc of a block
  uint64_t frees;            ///< calls that freed a block, and each realloc of a block
  uint64_t allocated_bytes;  ///< of the blocks that were allocated
  uint64_t freed_bytes;      ///< of the blocks that were freed, also those that are older or another thread's
  uint64_t peak_bytes;       ///< the most by which allocated bytes exceeded freed ones
} freehold_count_t;

/// Says what happens to the first allocation while a count lasts.
enum freehold_on_allocation {
  FREEHOLD_COUNT = 0,              ///< nothing: it is counted
  FREEHOLD_REPORT = 1,             ///< one line and its call stack on standard error
  FREEHOLD_ABORT_AFTER_REPORT = 2  ///< the same, then SIGABRT
};

/// Begins an exact count of what the calling thread allocates and frees; other threads are neither counted nor slower. A
/// count may begin within another one, which counts its calls, too. A count ends with its thread.
/// @param on_allocation  one of freehold_on_allocation
/// @return 0, or -1 with errno ENOMEM, or EINVAL for another number.
/// Cost: one allocation; until the end of the count about twice the instructions for each malloc and free of this thread,
/// and for good some instructions more for each block above 32 KiB of the process that is not kept for reuse.
int freehold_count_begin(int on_allocation);

/// Ends the calling thread's newest count.
/// @param out   the caller's struct
/// @param size  sizeof(freehold_count_t) as the caller was compiled: as in freehold_stats()
/// @return 0, or -1 with errno EINVAL: no count was begun, `out` is null or `size` is too small for its first member.
int freehold_count_end(freehold_count_t* out, size_t size);

/// Begins a sampled heap profile (docs/heap-profile.md), or goes on with one: which call stacks hold how many bytes. Blocks
/// that exist already are not in it. FREEHOLD_PROFILE=bytes begins one at the start.
/// @param distance  mean distance of samples in bytes; 0 for 512 KiB
/// @return 0, or -1 with errno ENOMEM, or ENOTSUP in checked mode.
/// Cost: one loading of the unwinder; then some microseconds for each sample.
int freehold_profile_start(size_t distance);

/// Takes no further samples; blocks that are sampled stay in the profile until they are freed.
void freehold_profile_stop(void);

/// Writes the profile as it is now to a file, which `freehold heap show` reads.
/// @param path  of the file, which is replaced; "%p" in it becomes the number of the process
/// @return 0, or -1 with errno: EINVAL if no profile was ever begun, else what the system says about the file.
int freehold_profile_write(const char* path);

/// The statistics of the whole process. Later versions append members and move none. A snapshot: figures of running threads
/// may be some operations old.
typedef struct freehold_stats_t {
  size_t size;           ///< bytes of this struct that the library filled; the rest of the caller's struct is zero
  uint32_t version;      ///< of the library's struct: FREEHOLD_STATS_VERSION when the library was built
  uint32_t class_count;  ///< size classes: entries that freehold_class_stats() can fill

  uint64_t reserved_bytes;      ///< address space reserved for the arena
  uint64_t committed_bytes;     ///< of it, readable and writable
  uint64_t small_span_bytes;    ///< spans that belong to a size class: blocks up to 32 KiB, in use or free
  uint64_t run_bytes;           ///< page runs in use: blocks above 32 KiB
  uint64_t direct_bytes;        ///< blocks too large for the arena, mapped one by one
  uint64_t retained_bytes;      ///< free spans and runs whose pages were not given back to the system yet
  uint64_t metadata_bytes;      ///< upper bound of the pages of bitmaps, caches and maps
  uint64_t cached_limit_bytes;  ///< sum of the bytes that thread caches are allowed to hold now
  uint64_t purged_bytes;        ///< given back to the system since the start

  uint64_t purge_calls;   ///< calls of madvise that gave memory back, since the start
  uint64_t span_claims;   ///< spans given to a size class, since the start
  uint64_t span_returns;  ///< wholly free spans taken back from a size class, since the start
  uint64_t lock_waits;    ///< times a thread slept for one of Freehold's locks, since the start
  uint64_t threads;       ///< thread caches alive now
  uint64_t peak_threads;  ///< the most thread caches alive at one time
  uint64_t late_frees;    ///< frees by threads whose cache was gone already, since the start

  uint32_t cpus;         ///< CPUs that the process may use
  char cpus_source[28];  ///< what decided that: "affinity", "cgroup" or "online"
  char cache_mode[16];   ///< "thread" or "cpu"
  char huge_pages[16];   ///< "off", "auto" or "on"
} freehold_stats_t;

/// The statistics of one size class. Later versions append members.
typedef struct freehold_class_stats_t {
  uint64_t slot_bytes;  ///< bytes of a slot of this class
  uint64_t spans;       ///< spans that belong to the class now
  uint64_t slots;       ///< slots in those spans
  uint64_t free_slots;  ///< of them, free in the shared bitmap; slots in thread caches count as used
  uint64_t refills;     ///< times a thread cache took slots from the bitmap, since the start
  uint64_t drains;      ///< times a thread cache gave slots back, since the start
} freehold_class_stats_t;

/// The version of the two structs above.
#define FREEHOLD_STATS_VERSION 1

/// Fills `out` with the statistics of the process. The caller's struct may be smaller or larger than the library's, because
/// program and library may have been built at different times: the library fills what both know, sets the rest of `out` to
/// zero, and stores the number of bytes it filled in `out->size`.
/// @param out   the caller's struct
/// @param size  sizeof(freehold_stats_t) as the caller was compiled
/// @return 0, or -1 with errno EINVAL if `out` is null or `size` is too small for the members `size`, `version` and
///         `class_count`.
/// Cost: one pass over all spans. Allocates nothing.
int freehold_stats(freehold_stats_t* out, size_t size);

/// Fills an array with the statistics of the size classes, the smallest class first.
/// @param out        an array of `count` structs of `entry_size` bytes each; may be null if `count` is 0
/// @param count      entries of the array; entries beyond the number of classes are left alone
/// @param entry_size sizeof(freehold_class_stats_t) as the caller was compiled. Each entry is filled as far as caller and
///                   library both know it; the rest of it is set to zero
/// @return the number of size classes, which may be more than `count`; 0 with errno EINVAL if `entry_size` is 0 or `out` is
///         null while `count` is not 0.
/// Cost: one pass over all spans. Allocates nothing.
size_t freehold_class_stats(freehold_class_stats_t* out, size_t count, size_t entry_size);

#ifdef __cplusplus
}
#endif

#endif
