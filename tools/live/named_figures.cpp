// SPDX-License-Identifier: MIT
#include "tools/live/named_figures.hpp"

#include <numeric>

namespace freehold::live {

std::vector<Figure> figures_of(const LiveStats& stats) {
  std::vector<Figure> all;
  const auto add = [&](const char* name, const char* words, const char* help, bool is_bytes, bool is_counter,
                       const std::optional<std::uint64_t>& value) {
    if (value) all.push_back({name, words, help, is_bytes, is_counter, *value});
  };
  const auto bytes = [&](const char* name, const char* words, const char* help, const std::optional<std::uint64_t>& value) {
    add(name, words, help, true, false, value);
  };
  const auto counter = [&](const char* name, const char* words, const char* help,
                           const std::optional<std::uint64_t>& value) { add(name, words, help, false, true, value); };
  const auto& held = stats.figures;
  std::optional<std::uint64_t> free_bytes = held[LiveFigure::kFreeDirtyBytes];
  if (free_bytes) *free_bytes += held[LiveFigure::kKeptBytes].value_or(0);
  const std::uint64_t cached =
      std::accumulate(stats.threads.begin(), stats.threads.end(), std::uint64_t{0},
                      [](std::uint64_t sum, const LiveThread& thread) { return sum + thread.cached_bytes; });
  bytes("slot_bytes", "slots up to 32 KiB, used or cached", "Slots up to 32 KiB that caches took: in use, or cached.",
        held[LiveFigure::kSlotBytes]);
  bytes("cached_bytes", "of that, in threads' caches", "Free slots in the caches of threads.", cached);
  bytes("class_span_bytes", "spans that these lie in", "Spans that belong to a size class.",
        held[LiveFigure::kClassSpanBytes]);
  bytes("returned_bytes", "of that, pages given back", "Pages in spans of size classes that went back to the system.",
        held[LiveFigure::kReturnedBytes]);
  bytes("run_bytes", "blocks above 32 KiB", "Blocks above 32 KiB that lie in the arena.", held[LiveFigure::kRunBytes]);
  bytes("direct_bytes", "blocks with a mapping each", "Blocks with a mapping of their own.", held[LiveFigure::kDirectBytes]);
  bytes("free_bytes", "free, not given back yet", "Free memory that is kept for reuse and may be resident.", free_bytes);
  bytes("huge_page_bytes", "resident in huge pages", "The process's memory that lies in transparent huge pages.",
        stats.huge_page_bytes);
  if (const auto limit = held[LiveFigure::kLimitBytes]; limit.value_or(0) != 0)
    bytes("limit_bytes", "limit", "The limit that FREEHOLD_LIMIT_BYTES or freehold_set_limit() set.", limit);
  add("threads", "threads with a cache", "Threads that have a cache.", false, false, held[LiveFigure::kThreads]);
  add("peak_threads", "the most at once", "The most threads with a cache at once.", false, false,
      held[LiveFigure::kPeakThreads]);
  counter("refills", "slow paths of malloc: refills", "Times that a cache was empty and took slots.", stats.refills);
  counter("drains", "slow paths of free: drains", "Times that a cache was full and gave slots back.", stats.drains);
  counter("remote_frees", "remote frees", "Slots given back to spans that another thread used last.", stats.remote_frees);
  counter("late_frees", "late frees", "Frees by threads whose cache was gone already.", held[LiveFigure::kLateFrees]);
  counter("lock_waits", "waits for a lock", "Times that a thread slept for one of Freehold's own locks.",
          held[LiveFigure::kLockWaits]);
  add("purged_bytes", "given back to the system", "Memory given back to the system.", true, true,
      held[LiveFigure::kPurgedBytes]);
  counter("purge_calls", "purges: calls that did", "System calls that gave memory back.", held[LiveFigure::kPurgeCalls]);
  counter("span_claims", "spans claimed", "Spans given to a size class.", held[LiveFigure::kSpanClaims]);
  counter("span_returns", "spans returned", "Wholly free spans taken back from a size class.",
          held[LiveFigure::kSpanReturns]);
  return all;
}

}  // namespace freehold::live
