// SPDX-License-Identifier: MIT
// The order of measurements: random, but measurements that will be compared follow each other.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

namespace freehold::cli {

// The indices 0…count-1 in a random order given by `seed`, with the indices of one group side by side, at the place of the
// group's first index. group(i) returns any ordered value. Groups, and the indices within a group, keep the random order.
template <class Group>
[[nodiscard]] std::vector<std::size_t> shuffled_groups(std::size_t count, std::uint32_t seed, Group group) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 random(seed);
  std::ranges::shuffle(order, random);
  std::vector<std::size_t> place(count);
  std::map<decltype(group(0)), std::size_t> place_of_group;
  for (std::size_t i = 0; i < count; ++i) {
    place[order[i]] = i;
    place_of_group.try_emplace(group(order[i]), i);
  }
  std::ranges::sort(order, {}, [&](std::size_t i) { return std::pair(place_of_group.at(group(i)), place[i]); });
  return order;
}

}  // namespace freehold::cli
