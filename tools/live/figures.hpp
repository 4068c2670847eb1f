// SPDX-License-Identifier: MIT
// The figures that Freehold's engine keeps in a process that runs: found in the writable data of libfreehold.so, or of the
// program or library that it is linked into, and read from outside. The process is neither stopped nor signalled, and does
// not notice. One thread. Cost: milliseconds for each 10 MB of data that is looked through.
#pragma once
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "freehold/alloc/observe/live_figures.hpp"
#include "tools/live/memory.hpp"

namespace freehold::live {

using alloc::LiveFigure;

// Each was true at its own moment; together they need not fit. Never negative. None: that engine does not have it.
class LiveFigures {
 public:
  [[nodiscard]] std::optional<std::uint64_t> operator[](LiveFigure figure) const {
    return values_[static_cast<std::size_t>(figure)];
  }
  void set(LiveFigure figure, std::uint64_t value) { values_[static_cast<std::size_t>(figure)] = value; }

 private:
  std::array<std::optional<std::uint64_t>, static_cast<std::size_t>(LiveFigure::kCount)> values_;
};

// Adds the memory of blocks: where there are several engines one serves malloc, and others at most their own library.
[[nodiscard]] inline std::uint64_t held_bytes(const LiveFigures& figures) {
  return figures[LiveFigure::kClassSpanBytes].value_or(0) + figures[LiveFigure::kRunBytes].value_or(0) +
         figures[LiveFigure::kDirectBytes].value_or(0);
}

inline constexpr std::size_t kMostScannedBytes = std::size_t{64} << 20;

// Reads the figures of the engine whose directory is marked there. None: it is of another version, damaged, or the process
// has ended.
[[nodiscard]] std::optional<LiveFigures> read_live_figures(LiveMemory& memory, std::uint64_t directory);

// Returns the address of a figure that is a single integer of 8 bytes; 0: that engine does not have it.
[[nodiscard]] std::uint64_t address_of_figure(LiveMemory& memory, std::uint64_t directory, LiveFigure figure);

// `maps`: the process's, just read. None: no Freehold of this version was found in so many bytes of data, or the process may
// not be looked at, or it has ended.
[[nodiscard]] std::optional<LiveFigures> read_live_figures(pid_t pid, const std::string& maps,
                                                           std::size_t most_bytes = kMostScannedBytes);

}  // namespace freehold::live
