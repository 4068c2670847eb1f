// SPDX-License-Identifier: MIT
#include "tools/doctor/verdict/site_advice.hpp"

namespace freehold::doctor {
namespace {

constexpr std::size_t kMostSites = 3;
constexpr double kLeastTimeShare = 0.02;  // share of the allocator's time, for a site to be worth it

SiteFit fit_of(const AllocationSite& site) {
  if (site.typical_bytes >= static_cast<double>(kLargeBytes)) return SiteFit::kNotOfLarge;
  if (!site.median_lifetime_s) return SiteFit::kNotOfLasting;
  if (site.fixed_size) return SiteFit::kPool;
  return site.freed_elsewhere > 0.5 ? SiteFit::kNotOfManyFreed : SiteFit::kHeap;
}

}  // namespace

std::string_view name_of(SiteFit fit) noexcept {
  switch (fit) {
    case SiteFit::kPool: return "pool";
    case SiteFit::kHeap: return "heap";
    case SiteFit::kNotOfManyFreed:
    case SiteFit::kNotOfLasting:
    case SiteFit::kNotOfLarge: break;
  }
  return "neither";
}

std::vector<SiteAdvice> advice_of(const Attribution& attribution) {
  std::vector<SiteAdvice> advice;
  for (std::size_t i = 0; i < attribution.sites.size() && advice.size() < kMostSites; ++i) {
    const AllocationSite& site = attribution.sites[i];
    if (site.time_share < kLeastTimeShare) break;  // the hottest come first
    advice.push_back({.site = i, .fit = fit_of(site), .cpu_share = site.time_share * attribution.cpu_share});
  }
  return advice;
}

}  // namespace freehold::doctor
