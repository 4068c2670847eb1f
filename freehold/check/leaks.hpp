// SPDX-License-Identifier: MIT
// A list of blocks that are still allocated, by the place that allocated them. Allocates nothing by malloc. One thread.
#pragma once
#include <cstddef>
#include <cstdint>

#include "freehold/check/block.hpp"
#include "freehold/os/pages.hpp"

namespace freehold::check {

class LeakList {
 public:
  explicit LeakList(os::Pages& pages) noexcept;
  ~LeakList();
  LeakList(const LeakList&) = delete;
  LeakList& operator=(const LeakList&) = delete;

  void add(const Contents& block) noexcept;
  // Writes to standard error: what they are, the sum, then the places with most bytes. Nothing if there is no block. Those
  // that the dynamic linker and the C++ runtime keep do not count.
  void write(const char* what = "leaked") noexcept;

 private:
  struct Site {
    std::uint32_t stack = 0;
    Family family = Family::kAny;
    std::uint64_t blocks = 0, bytes = 0;
  };
  void drop_runtime() noexcept;

  static constexpr std::size_t kSites = 8192;  // a power of two; blocks of what does not fit count in the sum alone
  static constexpr std::size_t kListed = 64;
  static constexpr std::size_t kBytes = kSites * sizeof(Site);

  os::Pages& pages_;
  Site* sites_;
  std::uint64_t blocks_ = 0, bytes_ = 0;
};

}  // namespace freehold::check
