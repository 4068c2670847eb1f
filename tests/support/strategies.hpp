// SPDX-License-Identifier: MIT
// The registry's strategies as types of a GoogleTest typed suite:
//
//   TYPED_TEST_SUITE(Pools, test::StrategyTypes, test::StrategyName);
#pragma once
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lab/strategies/registry.hpp"

namespace freehold::test {

template <class List>
struct AsTypes;
template <class... S>
struct AsTypes<pool::StrategyList<S...>> {
  using type = testing::Types<S...>;
};
using StrategyTypes = AsTypes<pool::Strategies>::type;

struct StrategyName {
  template <class S>
  static std::string GetName(int) {
    std::string name(S::kName);
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
  }
};

// Keeps this thread, and those that it starts, on one CPU of those it may use: then a pool that keeps slots for a CPU finds
// them all.
class OnOneCpu {
 public:
  explicit OnOneCpu(int which = 0) {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu)
      if (CPU_ISSET(cpu, &before_) && which-- == 0) CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
  }
  OnOneCpu(const OnOneCpu&) = delete;
  OnOneCpu& operator=(const OnOneCpu&) = delete;
  ~OnOneCpu() { sched_setaffinity(0, sizeof before_, &before_); }

  // How many this thread may use.
  [[nodiscard]] static int choices() {
    cpu_set_t all;
    sched_getaffinity(0, sizeof all, &all);
    return CPU_COUNT(&all);
  }

 private:
  cpu_set_t before_;
};

// Every slot that can be had, up to `limit`.
template <class P>
std::vector<void*> acquire_all(P& pool, std::size_t limit) {
  std::vector<void*> slots;
  while (slots.size() < limit) {
    void* const slot = pool.acquire();
    if (slot == nullptr) break;
    slots.push_back(slot);
  }
  return slots;
}

// The same, whichever CPU the pool keeps them for.
template <class P>
std::vector<void*> acquire_all_everywhere(P& pool, std::size_t limit) {
  std::vector<void*> slots;
  for (int which = OnOneCpu::choices(); which-- > 0;) {
    const OnOneCpu here(which);
    const std::vector<void*> found = acquire_all(pool, limit - slots.size());
    slots.insert(slots.end(), found.begin(), found.end());
  }
  return slots;
}

}  // namespace freehold::test
