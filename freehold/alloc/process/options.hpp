// SPDX-License-Identifier: MIT
// The one table of what the environment may change, or a string that is compiled into the program (freehold_options in
// freehold/malloc.h); the environment wins. Read once, before the first block; a value that makes no sense is reported on
// standard error in one line, and the default stands. Setuid programs ignore the environment.
#pragma once
#include <cstddef>
#include <cstdint>

#include "freehold/alloc/observe/profile.hpp"
#include "freehold/alloc/spans/arena.hpp"
#include "freehold/check/settings.hpp"
#include "freehold/os/program_options.hpp"

// X(name, kind, default, the default as text, effect). The table of docs/tuning.md and the manual page are made of them
// (script/check_tables). A complaint lists the names in this order; `check` is the last that the program's string may have.
// clang-format off
#define FREEHOLD_OPTIONS(X) \
  X(purge_delay_ms, os::Number, 500, "500", "free memory goes back to the system this long after it became free") \
  X(huge_pages, os::Word<HugePages>, HugePages::kAuto, "`auto`", "`off`: forbid transparent huge pages (`MADV_NOHUGEPAGE`), whatever the host's default; `auto`: ask for them under small objects beyond 512 KiB in use, larger ones beyond 32 MiB a CPU if they are written, and blocks from 4 MiB on, not `calloc`'s; `on`: under all small objects") \
  X(cache, os::Word<CacheMode>, CacheMode::kAuto, "`auto`", "`thread`: a cache per thread; `cpu`: one per CPU; `auto`: per thread up to 256 threads per CPU") \
  X(cache_bytes, os::Number, 0, "16 MiB, beyond 64 CPUs 256 KiB each", "the bytes that all thread caches may hold together beyond 16 KiB each") \
  X(background_thread, os::Word<BackgroundThread>, BackgroundThread::kAuto, "`auto`", "a thread of Freehold's that gives memory back after the delay. `auto`: in programs that have threads; `on`: also with one thread; `off`: never. Threads that share the caches of CPUs do not count") \
  X(limit_bytes, os::Number, 0, "none", "the greatest size of blocks and the memory kept for them together. Beyond it free memory goes back first, then requests fail with ENOMEM, and one line on standard error says so once. `freehold_set_limit()` changes it") \
  X(limit_warning, os::Switch, true, "1", "0: no line on standard error when the kernel's limit of memory is near") \
  X(cgroup, os::PathText<512>, {}, "the process's own", "a folder with `memory.max` or `memory.limit_in_bytes`, whose limit counts instead of those of the process's control groups; `off`: none") \
  X(prefault, os::Switch, false, "0", "1: memory is resident before it is handed out (`MADV_POPULATE_WRITE`, 4 MiB at a time): no page faults in the program's threads, more memory") \
  X(guard_rate, os::Number, 0, "0", "N: one allocation in N, at random, gets a separate page between inaccessible ones, and a misuse of it is reported with stacks ([hardening.md](hardening.md#sampled-guards)); 1: all; 0: none") \
  X(live, os::Switch, false, "0", "1: where `kernel.yama.ptrace_scope` is 1, processes of the same user may read this one's memory, as [`freehold stats`](stats.md) does, and attach debuggers; elsewhere it changes nothing") \
  X(profile, os::Number, 0, "0", "bytes: a sampled heap profile, one sample in so many bytes; 1: 512 KiB; 0: none ([heap-profile.md](heap-profile.md))") \
  X(profile_file, os::PathText<kMostPathBytes>, {}, "none", "where the heap profile goes when the process ends; `%p` becomes its number") \
  X(verbose, os::Switch, false, "0", "1: the line `freehold: active` on standard error when Freehold starts") \
  X(check, CheckedMode, {}, "0", "1: checked mode, which looks at every allocation and free; `FREEHOLD_CHECK_…` say how ([hardening.md](hardening.md#checked-mode))") \
  X(stats_fd, os::Variable, -1, "none", "for `freehold run`: where the process of `FREEHOLD_STATS_PID` leaves its statistics at exit, a sealed memory file") \
  X(stats_pid, os::Variable, 0, "none", "for `freehold run`: the id of that process")
// clang-format on

namespace freehold::alloc {

enum class CacheMode : std::uint8_t { kThread, kCpu, kAuto };
enum class BackgroundThread : std::uint8_t { kOff, kAuto, kOn };

constexpr const char* words_of(HugePages) noexcept { return "off, auto or on"; }
constexpr const char* words_of(CacheMode) noexcept { return "thread, cpu or auto"; }
constexpr const char* words_of(BackgroundThread) noexcept { return "off, auto or on"; }

// A kind as those of os/program_options.hpp.
struct CheckedMode {
  using Type = check::Settings;
  static void read(const os::OptionName&, Type& value) noexcept { value = check::settings(); }
};

struct Options {
#define FREEHOLD_MEMBER(name, kind, value, shown, effect) kind::Type name = value;
  FREEHOLD_OPTIONS(FREEHOLD_MEMBER)
#undef FREEHOLD_MEMBER
};

// In other processes than FREEHOLD_STATS_PID, stats_fd is -1.
[[nodiscard]] Options read_options() noexcept;
// True if an option is set that wants call stacks, for which the loader may be needed. Complains of nothing.
[[nodiscard]] bool options_want_call_stacks() noexcept;

}  // namespace freehold::alloc
