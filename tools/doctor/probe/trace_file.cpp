// SPDX-License-Identifier: MIT
#include "tools/doctor/probe/trace_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "freehold/os/mapped_file.hpp"
#include "freehold/os/undisturbed.hpp"

namespace freehold::doctor::probe {

constinit File g_file;

namespace {

constexpr int kLeastDescriptor = 100;  // the program's own files have the numbers that they would have without a probe

// The same file under a number that the program is not waiting for, if there is one.
[[nodiscard]] int moved_up(int fd) noexcept {
  const int moved = ::fcntl(fd, F_DUPFD_CLOEXEC, kLeastDescriptor);
  if (moved < 0) return fd;
  ::close(fd);
  return moved;
}

// Returns whether the descriptor is of the file, perhaps a new one. False: the path leads there no more, for this process.
[[nodiscard]] bool reach_file() noexcept {
  if (g_file.identity.is_of(g_file.fd)) return true;
  const int fd = ::open(g_file.path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return false;
  if (!g_file.identity.is_of(fd)) {
    ::close(fd);
    return false;
  }
  g_file.fd = moved_up(fd);
  return true;
}

// Pre of both: reach_file().
[[nodiscard]] bool make_room(std::uint64_t offset) noexcept {
  // Not ftruncate: a hole that cannot be filled later, on a full disk, would end the program by a signal. So would a limit
  // of file sizes.
  const os::Undisturbed undisturbed;
  return offset + kExtentBytes <= g_file.most_bytes &&
         posix_fallocate(g_file.fd, static_cast<off_t>(offset), static_cast<off_t>(kExtentBytes)) == 0;
}
[[nodiscard]] std::byte* map(std::uint64_t offset) noexcept {
  return static_cast<std::byte*>(os::MappedFile::map_shared(g_file.fd, kExtentBytes, static_cast<off_t>(offset)));
}

[[nodiscard]] bool new_extent(Thread& thread) noexcept {
  const sync::Guard guard(g_file.lock);
  const std::uint64_t offset = g_file.header->extents * kExtentBytes;
  if (thread.extent != nullptr) os::MappedFile::unmap(thread.extent, kExtentBytes);
  thread.extent = reach_file() && make_room(offset) ? map(offset) : nullptr;
  if (thread.extent == nullptr) {
    thread.cursor = thread.end = nullptr;
    return false;
  }
  ++g_file.header->extents;
  write_maps();
  thread.generation = g_file.generation.load(std::memory_order_relaxed);  // relaxed: changes in a child of fork only
  thread.cursor = thread.extent + sizeof(ExtentHeader);
  thread.end = thread.extent + kExtentBytes;
  ::new (thread.extent) ExtentHeader{.thread = thread.id, .used = 0};
  return true;
}

// Once: children of fork take their parent's, wherever they are then.
[[nodiscard]] bool find_folder() noexcept {
  const char* const named = std::getenv("FREEHOLD_PROBE_DIRECTORY");
  if (named == nullptr) return false;
  char here[sizeof g_file.folder] = "";
  if (named[0] != '/' && ::getcwd(here, sizeof here) == nullptr) return false;
  const int length = std::snprintf(g_file.folder, sizeof g_file.folder, "%s%s%s", here, here[0] == '\0' ? "" : "/", named);
  if (length > 0 && static_cast<std::size_t>(length) < sizeof g_file.folder) return true;
  g_file.folder[0] = '\0';
  return false;
}

}  // namespace

std::uint64_t monotonic_ns(clockid_t clock) noexcept {
  timespec t{};
  ::clock_gettime(clock, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec);
}
ClockReading read_clocks() noexcept { return {ticks(), monotonic_ns(CLOCK_MONOTONIC)}; }

// The memory map beside the records, for names: written again when there may be new libraries in it. Names are cut where the
// file cannot be written; nothing else is.
void write_maps() noexcept {
  const os::Undisturbed undisturbed;  // by a limit of file sizes
  const int from = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  const int to = ::open(g_file.maps_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  char buffer[4096];
  ssize_t bytes = 0;
  while (from >= 0 && to >= 0 && (bytes = ::read(from, buffer, sizeof buffer)) > 0 &&
         ::write(to, buffer, static_cast<std::size_t>(bytes)) == bytes) {
  }
  if (from >= 0) ::close(from);
  if (to >= 0) ::close(to);
}

bool open_file(std::uint32_t parent) noexcept {
  if (g_file.folder[0] == '\0' && !find_folder()) return false;
  g_file.fd = -1;
  for (unsigned n = 0; n < 1000; ++n) {  // a process that executes another program keeps its number
    const int length =
        std::snprintf(g_file.path, sizeof g_file.path, "%s/%d-%u.trace", g_file.folder, static_cast<int>(getpid()), n);
    if (length < 0 || static_cast<std::size_t>(length) >= sizeof g_file.path) return false;
    g_file.fd = ::open(g_file.path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (g_file.fd >= 0 || errno != EEXIST) break;
  }
  if (g_file.fd < 0) return false;
  g_file.fd = moved_up(g_file.fd);
  g_file.identity = os::FileIdentity::of(g_file.fd);
  g_file.header = make_room(0) ? reinterpret_cast<FileHeader*>(map(0)) : nullptr;
  if (g_file.header == nullptr) {
    ::close(g_file.fd);
    return false;
  }
  std::memcpy(g_file.maps_path, g_file.path, sizeof g_file.path);
  std::strcpy(std::strrchr(g_file.maps_path, '.'), ".maps");  // shorter than ".trace"
  write_maps();
  const ClockReading now = read_clocks();
  *g_file.header = {.magic = kTraceMagic,
                    .pid = static_cast<std::uint32_t>(getpid()),
                    .parent = parent,
                    .begin = now,
                    .last = now,
                    .cpu_ns = 0,
                    .extents = 1,
                    .dropped = 0,
                    .empty_call_ticks = 0,
                    .fast_path_picoseconds = 0,
                    .mapped_bytes = 0,
                    .mapping_ticks = 0,
                    .is_by_bytes = g_bytes_mask != 0 ? 1U : 0U,
                    .is_whole = g_all ? 1U : 0U};
  return true;
}

std::uint32_t leave_file() noexcept {
  if (g_file.header == nullptr) return 0;
  const std::uint32_t pid = g_file.header->pid;
  if (g_file.identity.is_of(g_file.fd)) ::close(g_file.fd);
  os::MappedFile::unmap(std::exchange(g_file.header, nullptr), kExtentBytes);
  return pid;
}

void add_totals(Thread& thread, bool ended) noexcept {
  std::byte* const at = room_for(thread, sizeof(RecordHeader) + sizeof(ThreadTotals));
  if (at == nullptr) return;
  const auto seen = [](const Countdown& calls) {
    return calls.calls + static_cast<std::uint64_t>(calls.gap - calls.left - calls.behind);
  };
  ::new (at) RecordHeader{RecordKind::kThread, 0, sizeof(RecordHeader) + sizeof(ThreadTotals)};
  ::new (at + sizeof(RecordHeader)) ThreadTotals{.ticks = ticks(),
                                                 .allocations = seen(thread.allocations),
                                                 .frees = seen(thread.frees),
                                                 .cpu_ns = monotonic_ns(CLOCK_THREAD_CPUTIME_ID),
                                                 .probe_ticks = thread.probe_ticks,
                                                 .ended = ended ? 1U : 0U};
  g_file.header->last = read_clocks();
  g_file.header->cpu_ns = monotonic_ns(CLOCK_PROCESS_CPUTIME_ID);
}

std::byte* room_for(Thread& thread, std::size_t bytes) noexcept {
  const bool is_of_parent = thread.generation != g_file.generation.load(std::memory_order_relaxed);
  if (is_of_parent) close_extent(thread);
  if (g_file.header == nullptr) return nullptr;  // a child that could not open a file
  if (static_cast<std::size_t>(thread.end - thread.cursor) < bytes && !new_extent(thread)) {
    std::atomic_ref(g_file.header->dropped).fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  std::byte* const at = thread.cursor;
  thread.cursor += bytes;
  reinterpret_cast<ExtentHeader*>(thread.extent)->used =
      static_cast<std::uint32_t>(thread.cursor - thread.extent - static_cast<std::ptrdiff_t>(sizeof(ExtentHeader)));
  return at;
}

void close_extent(Thread& thread) noexcept {
  if (thread.extent != nullptr) os::MappedFile::unmap(thread.extent, kExtentBytes);
  thread.extent = thread.cursor = thread.end = nullptr;
}

}  // namespace freehold::doctor::probe
