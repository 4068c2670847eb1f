// freehold workers --serve NAME: the supervisor as a program of its own, to which other processes attach by name.
#pragma once
#include <string>

#include "freehold/process/process_pool.hpp"

namespace freehold::cli::workers {

struct ServeSettings {
  ProcessPoolOptions pool;
  std::string name;
  bool quiet = false;
};

// Returns the exit code, 128 and the signal that ended it. Throws Failure if the name or the workers cannot be had.
[[nodiscard]] int serve(ServeSettings settings);

}  // namespace freehold::cli::workers
