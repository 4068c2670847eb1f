// SPDX-License-Identifier: MIT
// The file that a process's records go to: mapped extent by extent, one extent for each thread at a time. Shared by the
// recorder's parts; nothing outside of the probe sees it. The program knows nothing of the descriptor: it may close it, and
// open another file under the number. So each use looks first whether it still is the same file, and opens that by its path
// where it is not (reach_file() in trace_file.cpp).
#pragma once
#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>

#include "freehold/base/keep_errno.hpp"
#include "freehold/os/file_identity.hpp"
#include "freehold/sync/lock.hpp"
#include "tools/doctor/probe/recorder.hpp"
#include "tools/doctor/probe/trace_format.hpp"

namespace freehold::doctor::probe {

inline constexpr std::uint64_t kMostBytes = std::uint64_t{256} << 20;

// One for each process. A child of fork opens another one.
struct File {
  sync::Mutex<sync::NativeAtomics> lock;
  std::atomic<bool> is_on{false};
  std::atomic<std::uint32_t> generation{1};
  int fd = -1;                // of another file by now, unless `identity` says otherwise
  os::FileIdentity identity;  // the header's mapping holds the file
  FileHeader* header = nullptr;
  char folder[4096] = {};  // these are absolute: the program may change its folder
  char path[4096] = {};
  char maps_path[4096] = {};
  std::uint64_t most_bytes = kMostBytes;
  double ticks_per_ns = 1;
  std::atomic<std::uint64_t> next_epoch_ticks{0};
  std::atomic<std::uint64_t> wait_interval_ticks[2] = {};  // of locks, of idleness: waiting that one sample stands for
  std::atomic<std::uint64_t> last_wait_ticks[2] = {};      // when one was recorded
  pthread_key_t key{};
  std::uintptr_t own_begin = 0, own_end = 0;  // the probe's code, which is in no stack
};
extern constinit File g_file;

[[nodiscard]] std::uint64_t monotonic_ns(clockid_t clock) noexcept;
[[nodiscard]] ClockReading read_clocks() noexcept;

// Opens the file in FREEHOLD_PROBE_DIRECTORY; false: no such folder, or no room. Pre: the lock is held, or there is only one
// thread.
[[nodiscard]] bool open_file(std::uint32_t parent) noexcept;
// In a child of fork: leaves the file of the process that forked it, and says which that was; 0: that had none. Pre: there
// is only one thread.
std::uint32_t leave_file() noexcept;
// Writes the memory map beside the records, for names. Pre: the lock is held, or there is only one thread.
void write_maps() noexcept;
// Room for a record of `bytes`; null: no room is left.
[[nodiscard]] std::byte* room_for(Thread& thread, std::size_t bytes) noexcept;
// Records what the thread has called so far.
void add_totals(Thread& thread, bool ended) noexcept;
// Gives the thread's extent back.
void close_extent(Thread& thread) noexcept;

}  // namespace freehold::doctor::probe
