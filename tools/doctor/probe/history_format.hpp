// SPDX-License-Identifier: MIT
// The file between the doctor, which writes a history of mallocs and frees, and libfreehold-age.so, which plays it in a
// program before main, and adds to the header what that took.
//
//   file: HistoryHeader, then `calls` words of 64 bits
//   word: the bytes of a malloc; or kFreed, and the number of the malloc whose block is freed, counted from 0
#pragma once
#include <cstdint>

namespace freehold::doctor {

inline constexpr std::uint64_t kHistoryMagic = 0x31'7374'7369'6866;  // "fhists1"
inline constexpr std::uint64_t kFreed = std::uint64_t{1} << 63;

struct HistoryHeader {
  std::uint64_t magic = 0, calls = 0, mallocs = 0;
  // Sums over the programs that played it; what the table of blocks and this file took is in them.
  std::uint64_t programs = 0, wall_ns = 0, cpu_ns = 0;
  std::uint64_t refused = 0;  // mallocs that returned null
};

}  // namespace freehold::doctor
