// SPDX-License-Identifier: MIT
// Which of a pool, a heap or neither fits what an allocation site was recorded to do. A pool hands out slots of one size, to
// any thread. A heap serves many sizes and is dropped as a whole, with blocks that end where they began. Neither gains
// anything for blocks that live on, and large ones come from the system.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "tools/doctor/facts/attribution.hpp"

namespace freehold::doctor {

enum class SiteFit : std::uint8_t {
  kPool,            // all of its blocks are of one size
  kHeap,            // they are of many sizes, and end where they began
  kNotOfManyFreed,  // neither: they are of many sizes, and other threads free most of them
  kNotOfLasting,    // neither: most are never freed
  kNotOfLarge,      // neither: they are of kLargeBytes or more
};
[[nodiscard]] std::string_view name_of(SiteFit fit) noexcept;  // "pool", "heap", "neither"

struct SiteAdvice {
  std::size_t site = 0;  // Attribution::sites
  SiteFit fit = SiteFit::kPool;
  double cpu_share = 0;  // of the program's CPU time that goes into its blocks
};

// Advises on the hottest sites, at most three, which take 2% of the allocator's time or more.
[[nodiscard]] std::vector<SiteAdvice> advice_of(const Attribution& attribution);

}  // namespace freehold::doctor
