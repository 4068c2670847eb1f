// SPDX-License-Identifier: MIT
// freehold-lab: the experiments. `freehold` starts it, as itself, for the subcommands that it has.
#include <string_view>

#include "lab/laboratory.hpp"
#include "lab/pools/experiment.hpp"
#include "lab/scale/experiment.hpp"
#include "lab/timers/experiment.hpp"

using namespace freehold::cli;

int main(int argc, char** argv) {
  // Workers first, before any other code allocates: they measure the allocator.
  if (argc > 1 && argv[1] == std::string_view(scale::kWorkerCommand)) return scale::worker_main({argv + 2, argv + argc});
  if (argc > 1 && argv[1] == std::string_view(pools::kWorkerCommand)) return pools::worker_main({argv + 2, argv + argc});
  if (argc > 1 && argv[1] == std::string_view(timers::kWorkerCommand)) return timers::worker_main({argv + 2, argv + argc});
  if (argc > 1 && argv[1] == std::string_view(scale::kPoolWorkerCommand)) return scale::pool_worker_main();
  const char* const name = argc > 0 && argv[0] == std::string_view(kFreehold) ? kFreehold : "freehold-lab";
  return exit_code_of(name, [&] {
    return execute({.name = name,
                    .summary = "Experiments: how allocators, pools and timers scale on this machine",
                    .add_subcommands = add_laboratory},
                   argc, argv);
  });
}
