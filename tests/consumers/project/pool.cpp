// SPDX-License-Identifier: MIT
// A program with a pool of its objects.
#include <cstdlib>
#include <string>

#include "freehold/pool.hpp"

int main() {
  freehold::pool::ObjectPool<std::string> pool(1);
  const auto text = pool.make("hello");
  return text != nullptr && *text == "hello" && pool.make("none is left") == nullptr ? EXIT_SUCCESS : EXIT_FAILURE;
}
