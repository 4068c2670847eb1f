// SPDX-License-Identifier: MIT
// A program with a pool of worker processes. Its component is missing, and every task says so.
#include <cstdio>
#include <cstdlib>

#include "freehold/process.hpp"

int main() {
  freehold::ProcessPoolOptions options;
  options.max_attempts = 1;
  options.component = "./no_such_component.so";
  freehold::ProcessPool pool(options);
  if (!pool.ok()) return std::puts(pool.error().c_str()), EXIT_SUCCESS;
  return pool.call("input").ok() ? EXIT_FAILURE : EXIT_SUCCESS;
}
