// The order of measurements: random, but what is to be compared with each other is measured side by side.
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

// 0…count-1, shuffled by `seed`; then indices of the same group(i) (any ordered value) stand together, where the first of
// them stood. Within a group, and between the groups, the order stays what chance made it.
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
