// SPDX-License-Identifier: MIT
// The machine's memory nodes (NUMA): how many there are, and on which of them pages are placed.
#pragma once
#include <cstddef>

namespace freehold::os {

struct Nodes {
  // One more than the highest number of a node that may ever have memory, from the system's list ("0-1"); 1 if it cannot be
  // read. Read once.
  [[nodiscard]] static unsigned count() noexcept;
  // Places the whole pages of [memory, memory + bytes) on a node, including pages that exist already. False: the system
  // refuses, and nothing changes.
  static bool bind(void* memory, std::size_t bytes, unsigned node) noexcept;
  // Undoes that for pages that do not exist yet: they will be placed on the node of the thread that touches them first.
  static void unbind(void* memory, std::size_t bytes) noexcept;
};

}  // namespace freehold::os
