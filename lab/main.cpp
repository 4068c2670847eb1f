// SPDX-License-Identifier: MIT
// freehold-lab: the experiments. `freehold` starts it, as itself, for the subcommands that it has.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/experiment/run.hpp"
#include "lab/laboratory.hpp"
#include "lab/pools/job.hpp"
#include "lab/scale/job.hpp"
#include "lab/timers/job.hpp"

using namespace freehold::lab;
using namespace freehold::cli;

namespace {

// The exit code, if the command line is one for workers of such a job.
template <class Job>
std::optional<int> worker(const std::vector<std::string>& words) {
  if (words.empty() || words.front() != Job::kWorker) return std::nullopt;
  return worker_main<Job>({words.begin() + 1, words.end()});
}

}  // namespace

int main(int argc, char** argv) {
  // Workers first, before any other code allocates: they measure the allocator.
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  for (const auto& code : {worker<scale::Job>(words), worker<pools::Job>(words), worker<timers::Job>(words)})
    if (code) return *code;
  if (!words.empty() && words.front() == scale::kPoolWorkerCommand) return scale::pool_worker_main();
  if (!words.empty() && words.front() == scale::kDocumentCommand)
    return scale::document_main({words.begin() + 1, words.end()});
  const char* const name = argc > 0 && argv[0] == std::string_view(kFreehold) ? kFreehold : "freehold-lab";
  return exit_code_of(name, [&] {
    return execute({.name = name,
                    .summary = "Experiments: how allocators, pools and timers scale on this machine",
                    .add_subcommands = add_laboratory},
                   argc, argv);
  });
}
