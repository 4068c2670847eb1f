// SPDX-License-Identifier: MIT
// The command as one static file, with all inside that the other command finds beside itself.
#include "cli/command.hpp"
#include "cli/one/files.hpp"
#include "tools/support/carried.hpp"

int main(int argc, char** argv) {
  freehold::tools::carry(freehold::cli::one::files());
  return freehold::cli::freehold_main(argc, argv);
}
