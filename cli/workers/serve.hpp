// SPDX-License-Identifier: MIT
// freehold workers --serve NAME: runs a pool as a program of its own, to which other processes attach by name.
#pragma once
#include <string>

#include "freehold/process.hpp"

namespace freehold::cli::workers {

struct ServeSettings {
  ProcessPoolOptions pool;
  std::string name;
  bool quiet = false;
};

// Returns the exit code, 128 and the signal that ended it. Throws Failure if the name is taken or the pool cannot be set up.
[[nodiscard]] int serve(ServeSettings settings);

}  // namespace freehold::cli::workers
