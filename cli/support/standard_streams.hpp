// Standard input, output and error, however the caller left them.
#pragma once
#include <string>

namespace freehold::cli {

// Descriptors 0 to 2 are given to workers anew: if a caller closed them, no pipe may take their numbers.
void open_standard_files();
// Throws Failure(kExitRefused) if not everything could be written.
void print_to_stdout(const std::string& text);

}  // namespace freehold::cli
