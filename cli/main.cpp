// SPDX-License-Identifier: MIT
// The freehold command: turns every error into one line and an exit code.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <string_view>

#include "cli/command.hpp"
#include "cli/pools/worker.hpp"
#include "cli/scale/via_pool.hpp"
#include "cli/scale/worker.hpp"
#include "cli/support/failure.hpp"
#include "cli/timers/worker.hpp"

using namespace freehold::cli;

int main(int argc, char** argv) {
  // Workers first, before any other code allocates: they measure the allocator.
  if (argc > 1 && argv[1] == std::string_view(scale::kWorkerCommand)) return scale::worker_main({argv + 2, argv + argc});
  if (argc > 1 && argv[1] == std::string_view(pools::kWorkerCommand)) return pools::worker_main({argv + 2, argv + argc});
  if (argc > 1 && argv[1] == std::string_view(timers::kWorkerCommand)) return timers::worker_main({argv + 2, argv + argc});
  if (argc > 1 && argv[1] == std::string_view(scale::kPoolWorkerCommand)) return scale::pool_worker_main();
  try {
    return execute(argc, argv);
  } catch (const Failure& failure) {
    fmt::print(stderr, "freehold: {}\n", failure.what());
    return failure.exit_code();
  } catch (const std::exception& error) {
    fmt::print(stderr, "freehold: {}\n", error.what());
    return kExitRefused;
  }
}
