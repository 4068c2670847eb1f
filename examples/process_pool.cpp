// SPDX-License-Identifier: MIT
// A component that crashes, called as if it were a function: it runs in worker processes, and one bad task costs nothing but
// that task.   example_process_pool COMPONENT
#include <cstdio>
#include <string>
#include <vector>

#include "freehold/process.hpp"

int main(int argc, char** argv) {
  freehold::ProcessPoolOptions options;
  options.component = argc > 1 ? argv[1] : "./process_component.so";
  options.run_timeout = std::chrono::seconds(10);
  options.max_attempts = 2;
  freehold::ProcessPool pool(options);
  if (!pool.ok()) {
    std::fprintf(stderr, "%s\n", pool.error().c_str());
    return 1;
  }
  std::vector<freehold::process::Future> futures;
  for (int number = 1; number <= 100; ++number) futures.push_back(pool.submit(std::to_string(number)));
  long sum = 0;
  for (std::size_t i = 0; i < futures.size(); ++i) {
    const freehold::process::Result result = futures[i].get();
    if (result.ok())
      sum += std::stol(std::string(result.text()));
    else
      std::printf("%zu: failed by signal %d\n", i + 1, result.error().value);
  }
  std::printf("sum of the squares %ld\n", sum);
  return 0;
}
