// SPDX-License-Identifier: MIT
// The freehold command.
#include "cli/command.hpp"

int main(int argc, char** argv) { return freehold::cli::freehold_main(argc, argv); }
