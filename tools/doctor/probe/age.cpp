// SPDX-License-Identifier: MIT
// libfreehold-age.so: preloaded into a program, it calls malloc and free as a history says (history_format.hpp) before main,
// and leaves the heap as these calls leave it: some blocks live for ever, between them is free memory. It has no malloc: the
// calls go to the one that the program uses.
//
// When: its constructor runs after those of the libraries that the program needs, and before the program's own. By the
// first thread, so that a malloc with a heap for each thread ages that thread's. Every program that this one executes plays
// it, too; a child of fork has its parent's heap. Without FREEHOLD_HISTORY it does nothing.
//
// The table of blocks comes from the system, and goes back. Of each block every page is written, as programs do.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>

#include "freehold/os/mapped_file.hpp"
#include "freehold/os/pages.hpp"
#include "tools/doctor/probe/history_format.hpp"

namespace {
using freehold::doctor::HistoryHeader;
using freehold::doctor::kFreed;
using freehold::os::MappedFile;
using freehold::os::Pages;

std::uint64_t now_ns(clockid_t clock) noexcept {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}
void add(std::uint64_t& sum, std::uint64_t value) noexcept {
  std::atomic_ref(sum).fetch_add(value, std::memory_order_relaxed);  // relaxed: read when all have ended
}

void write_pages(volatile std::byte* block, std::uint64_t bytes) noexcept {
  constexpr std::uint64_t kPage = 4096;
  for (std::uint64_t at = 0; at < bytes; at += kPage) block[at] = std::byte{1};
  if (bytes > 0) block[bytes - 1] = std::byte{1};
}

// Returns how many mallocs returned null. Pre: `blocks` has room for all.
std::uint64_t play(const std::uint64_t* calls, std::uint64_t count, void** blocks) noexcept {
  std::uint64_t made = 0, refused = 0;
  for (const std::uint64_t* call = calls; call < calls + count; ++call) {
    if ((*call & kFreed) != 0) {
      std::free(blocks[*call & ~kFreed]);
      continue;
    }
    void* const block = std::malloc(*call);
    if (block == nullptr)
      ++refused;
    else
      write_pages(static_cast<volatile std::byte*>(block), *call);
    blocks[made++] = block;
  }
  return refused;
}

void play(HistoryHeader& header) noexcept {
  const std::uint64_t wall_ns = now_ns(CLOCK_MONOTONIC), cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
  const std::size_t page = freehold::os::page_bytes();
  const std::size_t table_bytes = (header.mallocs * sizeof(void*) / page + 1) * page;
  void* const table = Pages::map(table_bytes);
  if (table == nullptr) return;
  const auto* const calls = reinterpret_cast<const std::uint64_t*>(&header + 1);
  add(header.refused, play(calls, header.calls, static_cast<void**>(table)));
  Pages::unmap(table, table_bytes);
  add(header.wall_ns, now_ns(CLOCK_MONOTONIC) - wall_ns);
  add(header.cpu_ns, now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns);
  add(header.programs, 1);
}

[[gnu::constructor]] void age() {
  const char* const path = std::getenv("FREEHOLD_HISTORY");
  if (path == nullptr) return;
  const int fd = ::open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return;
  struct stat status{};
  const bool is_long = ::fstat(fd, &status) == 0 && status.st_size >= static_cast<off_t>(sizeof(HistoryHeader));
  const auto bytes = static_cast<std::size_t>(status.st_size);
  if (void* const file = is_long ? MappedFile::map_shared(fd, bytes) : nullptr; file != nullptr) {
    auto& header = *static_cast<HistoryHeader*>(file);
    const bool is_whole = header.calls == (bytes - sizeof header) / sizeof(std::uint64_t);
    if (header.magic == freehold::doctor::kHistoryMagic && is_whole) play(header);
    MappedFile::unmap(file, bytes);
  }
  ::close(fd);
}

}  // namespace
