// SPDX-License-Identifier: MIT
// The same as cli/reference/main.cpp, with the options of the experiments, which `freehold` passes on.
#include "cli/reference/commands.hpp"
#include "lab/laboratory.hpp"

using namespace freehold::lab;
using namespace freehold::cli;

namespace {

void add_all(CLI::App& app, Invocation& invocation) {
  add_product(app, invocation);
  add_laboratory(app, invocation);
}

}  // namespace

int main(int argc, char** argv) {
  return reference::write_reference({.name = kFreehold, .summary = kSummary, .add_subcommands = add_all}, argc, argv);
}
