// SPDX-License-Identifier: MIT
// Finds what free memory the sampled blocks of a process that runs keep from the system: a page goes back only when all of
// its slots are free. A sampled block has a separate page; it stands for blocks at its home, the slot that it would have had
// (profile/live_profile.hpp). So it is taken to lie there instead of what lies there now: it and the other blocks of the
// page that are in use keep the page's free bytes, each a part. One thread. Cost: a copy of the free bits of the spans that
// are homes, and of what threads' caches hold.
#pragma once
#include <cstdint>
#include <vector>

#include "tools/live/memory.hpp"

namespace freehold::live {

struct PinningBlock {
  std::uint64_t home = 0;  // as in profile::LivePlace
  std::uint64_t size = 0;  // of its slot, bytes

  // The free bytes of its page, and of its span, how many other blocks keep them, too, and the block's part of them. A
  // slot on two pages has both pages'.
  struct Kept {
    std::uint64_t free_bytes = 0;
    std::uint32_t others = 0;
    double part = 0;  // bytes
  };
  Kept page{}, span{};
  bool is_known = false;
};

// Fills in what is not the home. False: the engine, whose directory is marked there, cannot be read.
[[nodiscard]] bool find_pinned(LiveMemory& memory, std::uint64_t directory, std::vector<PinningBlock>& blocks);

}  // namespace freehold::live
