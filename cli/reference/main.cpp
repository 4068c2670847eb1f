// SPDX-License-Identifier: MIT
// freehold_reference FOLDER: part of the build, not installed; what it writes is.
#include "cli/reference/commands.hpp"

using namespace freehold::cli;

int main(int argc, char** argv) {
  return reference::write_reference({.name = kFreehold, .summary = kSummary, .add_subcommands = add_freehold}, argc, argv);
}
