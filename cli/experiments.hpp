// SPDX-License-Identifier: MIT
// The subcommands of the laboratory, freehold-lab, which is a program apart: `freehold pools` starts it.
#pragma once
#include <array>
#include <string_view>

namespace CLI {
class App;
}

namespace freehold::cli {

struct Experiment {
  const char* name;
  const char* summary;
};
inline constexpr std::array kExperiments{
    Experiment{"scale", "Measure how allocators scale, in threads and in processes"},
    Experiment{"pools", "Compare pools of fixed-size slots: the experiments of two articles"},
    Experiment{"simulate", "Count Freehold's coherence misses and lock hand-overs on 1 to 384 simulated cores"},
    Experiment{"timers", "Compare timer queues and wheels on private and shared heaps"},
    Experiment{"articles", "Test the claims of the five articles on this machine"},
};
// Null if the laboratory has no subcommand of this name.
[[nodiscard]] const Experiment* find_experiment(std::string_view name);
// Adds the names and summaries, for the help.
void add_experiments(CLI::App& app);
// Replaces this process by freehold-lab, found beside the running command or in PATH. Its argv[0] is "freehold", so that its
// messages name the command that the user typed. Throws Failure(kExitRefused) if it is not installed.
[[noreturn]] void start_experiment(char** argv);

}  // namespace freehold::cli
