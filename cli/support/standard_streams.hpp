// SPDX-License-Identifier: MIT
// Standard input, output and error, even if the caller closed them.
#pragma once
#include <string>

namespace freehold::cli {

// Opens descriptors 0 to 2 on /dev/null if they are closed, so that no pipe gets their numbers: workers redirect them.
void open_standard_files();
// Throws Failure(kExitRefused) if not everything could be written.
void print_to_stdout(const std::string& text);

}  // namespace freehold::cli
