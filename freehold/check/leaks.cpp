// SPDX-License-Identifier: MIT
#include "freehold/check/leaks.hpp"

#include <algorithm>

#include "freehold/base/bits.hpp"
#include "freehold/check/call_stacks.hpp"
#include "freehold/check/report.hpp"

namespace freehold::check {

LeakList::LeakList(os::Pages& pages) noexcept
    : pages_(pages), sites_(static_cast<Site*>(pages.map(base::align_up(kBytes, os::kLargestPageBytes)))) {}

LeakList::~LeakList() {
  if (sites_ != nullptr) (void)pages_.unmap(sites_, base::align_up(kBytes, os::kLargestPageBytes));
}

void LeakList::add(const Contents& block) noexcept {
  ++blocks_;
  bytes_ += block.bytes;
  if (sites_ == nullptr) return;
  const std::size_t first = mix(block.allocated_at * std::uint64_t{4} + static_cast<unsigned>(block.family));
  for (std::size_t i = 0; i < kSites; ++i) {
    Site& site = sites_[(first + i) % kSites];
    if (site.blocks != 0 && (site.stack != block.allocated_at || site.family != block.family)) continue;
    site = {block.allocated_at, block.family, site.blocks + 1, site.bytes + block.bytes};
    return;
  }
}

void LeakList::write() noexcept {
  if (blocks_ == 0) return;
  {
    base::TextLine<kLineBytes> line;
    line.add("freehold: leaked: ");
    line.add(bytes_);
    line.add(" bytes in ");
    line.add(blocks_);
    line.add(" blocks");
    line.write();
  }
  if (sites_ == nullptr) return;
  std::sort(sites_, sites_ + kSites, [](const Site& a, const Site& b) { return a.bytes > b.bytes; });
  for (std::size_t i = 0; i < kListed && sites_[i].blocks != 0; ++i) {
    detail(sites_[i].bytes, " bytes in ", sites_[i].blocks, " blocks by ", name_of(sites_[i].family));
    detail_call_stack("allocated at:", sites_[i].stack);
  }
}

}  // namespace freehold::check
