// The machine's memory nodes (NUMA), and where pages lie.
#pragma once
#include <cstddef>

namespace freehold::os {

struct Nodes {
  // One more than the highest number of a node that may ever have memory, from the system's list ("0-1"); 1 if it cannot be
  // read. Read once.
  [[nodiscard]] static unsigned count() noexcept;
  // Has the whole pages of [memory, memory + bytes) lie on a node, those that are there already, too. False: the system
  // refuses, and nothing changes.
  static bool bind(void* memory, std::size_t bytes, unsigned node) noexcept;
  // Ends that for pages that will be made: they lie where their thread runs, as always.
  static void unbind(void* memory, std::size_t bytes) noexcept;
};

}  // namespace freehold::os
