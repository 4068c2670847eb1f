// SPDX-License-Identifier: MIT
// Structs of the C API that later versions append members to. Program and library may have been built at different times, so
// the caller says how many bytes its struct has: options in their first member, `size`; for statistics in an argument.
// One rule for all: what only one side knows counts as zero. Options that ask for what this library does not know are
// refused.
#pragma once
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace freehold::base {

// Reads options. False, with errno EINVAL: the size is too small for its own member, or an unknown member is not zero.
template <class Options>
[[nodiscard]] bool read_sized(const Options& from, Options& to) noexcept {
  bool known = from.size >= sizeof from.size;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&from);
  for (std::size_t i = sizeof to; known && i < from.size; ++i) known = bytes[i] == 0;
  if (!known) {
    errno = EINVAL;
    return false;
  }
  std::memcpy(&to, &from, from.size < sizeof to ? from.size : sizeof to);
  return true;
}

// Fills the caller's struct of `size` bytes with ours. Returns the bytes that both know; the rest of the caller's is zero.
template <class Stats>
std::size_t write_sized(void* to, std::size_t size, const Stats& ours) noexcept {
  const std::size_t known = size < sizeof ours ? size : sizeof ours;
  std::memcpy(to, &ours, known);
  std::memset(static_cast<char*>(to) + known, 0, size - known);
  return known;
}

// The same for a struct whose first member, `size`, receives the number of those bytes. False, with errno EINVAL: there is
// no struct, or it has no room for that member.
template <class Stats>
[[nodiscard]] bool fill_sized(Stats* to, std::size_t size, const Stats& ours) noexcept {
  if (to == nullptr || size < sizeof ours.size) {
    errno = EINVAL;
    return false;
  }
  const std::size_t known = write_sized(to, size, ours);
  to->size = known;
  return true;
}

}  // namespace freehold::base
