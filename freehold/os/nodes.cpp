// SPDX-License-Identifier: MIT
#include "freehold/os/nodes.hpp"

#include <linux/mempolicy.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "freehold/base/bits.hpp"
#include "freehold/os/cpu.hpp"
#include "freehold/os/pages.hpp"
#include "freehold/os/system_call.hpp"

namespace freehold::os {
namespace {

constexpr unsigned kMostNodes = 1024;  // more than any Linux has

struct Range {
  std::uintptr_t start;
  std::size_t bytes;
};
Range whole_pages(void* memory, std::size_t bytes) noexcept {
  const auto from = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t start = base::align_up(from, page_bytes());
  const std::uintptr_t end = base::align_down(from + bytes, page_bytes());
  return {start, start < end ? end - start : 0};
}

long mbind(Range pages, int mode, const unsigned long* nodes, unsigned flags) noexcept {
  const int before = errno;
  const long result =
      system_call(SYS_mbind, pages.start, pages.bytes, mode, nodes, nodes != nullptr ? kMostNodes + 1UL : 0UL, flags);
  errno = before;
  return result;
}

}  // namespace

unsigned Nodes::count() noexcept {
  static constinit std::atomic<unsigned> found{0};
  if (const unsigned nodes = found.load(std::memory_order_relaxed); nodes != 0) return nodes;  // relaxed: all find the same
  unsigned nodes = possible_cpus("/sys/devices/system/node/possible");                         // a list of the same form
  if (nodes == 0) nodes = 1;
  found.store(nodes, std::memory_order_relaxed);
  return nodes;
}

bool Nodes::bind(void* memory, std::size_t bytes, unsigned node) noexcept {
  constexpr unsigned kBits = 8 * sizeof(unsigned long);
  if (node >= kMostNodes) return false;
  unsigned long nodes[kMostNodes / kBits] = {};
  nodes[node / kBits] = 1UL << (node % kBits);
  const Range pages = whole_pages(memory, bytes);
  return pages.bytes == 0 || mbind(pages, MPOL_BIND, nodes, MPOL_MF_MOVE) == 0;
}

void Nodes::unbind(void* memory, std::size_t bytes) noexcept {
  const Range pages = whole_pages(memory, bytes);
  if (pages.bytes != 0) (void)mbind(pages, MPOL_DEFAULT, nullptr, 0);
}

}  // namespace freehold::os
