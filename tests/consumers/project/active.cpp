// SPDX-License-Identifier: MIT
// The same in C++: new, a container, and an exception that libstdc++ allocates.
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>

#include "freehold/malloc.h"

int main() {
  std::map<int, std::string> map;
  for (int i = 0; i < 1000; ++i) map[i] = std::string(static_cast<std::size_t>(i), 'x');
  std::size_t sum = 0;
  try {
    for (int i = 0; i <= 1000; ++i) sum += map.at(i).size();
  } catch (const std::out_of_range&) {
    sum += 1;
  }
  return sum == 1000 * 999 / 2 + 1 && freehold_is_active() ? EXIT_SUCCESS : EXIT_FAILURE;
}
