// SPDX-License-Identifier: MIT
#include "freehold/check/leaks.hpp"

#include <algorithm>
#include <cstring>

#include "freehold/base/bits.hpp"
#include "freehold/check/call_stacks.hpp"
#include "freehold/check/report.hpp"
#include "freehold/os/modules.hpp"

namespace freehold::check {
namespace {

// Blocks that the dynamic linker and the C++ runtime hold until the process ends: a thread's local storage, the room for
// exceptions when memory is exhausted. Operator new inside of the runtime serves the program.
[[nodiscard]] bool is_of_the_runtime(std::uint32_t stack, Family family) noexcept {
  if (stack == kBeforeStacks) return keeps_call_stacks();
  void* caller = nullptr;
  os::Module module;
  if (family != Family::kMalloc || read_call_stack(stack, &caller, 1) == 0 || !os::find_module(caller, module)) return false;
  const char* const slash = std::strrchr(module.path, '/');
  const char* const name = slash != nullptr ? slash + 1 : module.path;
  return std::strncmp(name, "ld-", 3) == 0 || std::strncmp(name, "libstdc++.so", 12) == 0;
}

}  // namespace

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

void LeakList::drop_runtime() noexcept {
  for (Site* site = sites_; site != nullptr && site != sites_ + kSites; ++site) {
    if (site->blocks == 0 || !is_of_the_runtime(site->stack, site->family)) continue;
    blocks_ -= site->blocks;
    bytes_ -= site->bytes;
    *site = {};
  }
}

void LeakList::write() noexcept {
  drop_runtime();
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
  hint_at_lines();
}

}  // namespace freehold::check
