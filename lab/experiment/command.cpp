// SPDX-License-Identifier: MIT
#include "lab/experiment/command.hpp"

#include <fmt/format.h>

namespace freehold::cli {

void ExperimentOptions::add_to(Command& command, const Help& help) {
  command.add_option("--repeat", repeat, fmt::format("Number of sets of measurements, for medians [{}]", help.sets), "N");
  if (help.time != nullptr) command.add_option("--time", milliseconds, help.time, "MS");
  command.add_flag("--quick", quick, help.quick);
  files.add_options(command);
  command.footer(fmt::format("Ctrl-C ends the experiment early and keeps the finished measurements. {}", help.page));
}

}  // namespace freehold::cli
