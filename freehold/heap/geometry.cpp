#include <algorithm>

#include "freehold/heap/slab.hpp"
#include "freehold/os/cpu.hpp"

namespace freehold::heap {

unsigned HeapGeometry::shards() noexcept {
  static constexpr unsigned kMost = 64;
  static const unsigned shards = std::clamp(os::possible_cpus(), 1U, kMost);
  return shards;
}

}  // namespace freehold::heap
