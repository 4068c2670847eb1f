// SPDX-License-Identifier: MIT
#include "freehold/check/leaks.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "freehold/base/bits.hpp"
#include "freehold/check/call_stacks.hpp"
#include "freehold/check/report.hpp"
#include "freehold/os/modules.hpp"

namespace freehold::check {
namespace {

[[nodiscard]] bool is_in(const void* address, const char* library) noexcept {
  os::Module module;
  if (!os::find_module(address, module)) return false;
  const char* const slash = std::strrchr(module.path, '/');
  return std::strncmp(slash != nullptr ? slash + 1 : module.path, library, std::strlen(library)) == 0;
}

// The room for exceptions of a C++ runtime that is linked in: of a fixed size (libstdc++ 5 to 12; from 13 on), from a
// constructor that the C library or the dynamic linker calls itself. main() lies one frame deeper.
[[nodiscard]] bool is_exception_room(std::uint32_t stack, std::uint64_t blocks, std::uint64_t bytes) noexcept {
  void* calls[4] = {};
  if (blocks != 1 || (bytes != 72'704 && bytes != 73'728)) return false;
  const unsigned depth = read_call_stack(stack, calls, 4);
  return depth >= 2 && (is_in(calls[1], "ld-") || (depth == 3 && is_in(calls[1], "libc.so")));
}

// Blocks that the dynamic linker holds until the process ends: a thread's local storage. (What the libraries' own variables
// lead to is no leak either: runtime_blocks.hpp.)
[[nodiscard]] bool is_of_the_linker(std::uint32_t stack, Family family) noexcept {
  if (stack == kBeforeStacks) return keeps_call_stacks();
  void* caller = nullptr;
  if (family != Family::kMalloc || read_call_stack(stack, &caller, 1) == 0) return false;
  return is_in(caller, "ld-");
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
    if (site->blocks == 0) continue;
    if (!is_of_the_linker(site->stack, site->family) && !is_exception_room(site->stack, site->blocks, site->bytes)) continue;
    blocks_ -= site->blocks;
    bytes_ -= site->bytes;
    *site = {};
  }
}

void LeakList::write(const char* what) noexcept {
  drop_runtime();
  if (blocks_ == 0) return;
  {
    os::TextLine<kLineBytes> line;
    line.add("freehold: ");
    line.add(what);
    line.add(": ");
    line.add(bytes_);
    line.add(" bytes in ");
    line.add(blocks_);
    line.add(" blocks");
    line.write();
  }
  if (sites_ == nullptr) return;
  std::sort(sites_, sites_ + kSites,
            [](const Site& a, const Site& b) { return std::pair(a.bytes, a.blocks) > std::pair(b.bytes, b.blocks); });
  for (std::size_t i = 0; i < kListed && sites_[i].blocks != 0; ++i) {
    detail(sites_[i].bytes, " bytes in ", sites_[i].blocks, " blocks by ", name_of(sites_[i].family));
    detail_call_stack("allocated at:", sites_[i].stack);
  }
  hint_at_lines();
}

}  // namespace freehold::check
