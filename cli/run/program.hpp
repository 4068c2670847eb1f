// SPDX-License-Identifier: MIT
// Finds the program that a command line names, as the shell would, and checks whether LD_PRELOAD can work: static and setuid
// programs, and programs for another machine or C library, ignore it without a message. The error is one line with the
// reason and the way out. Scripts are followed to their interpreter.
#pragma once
#include <string>

namespace freehold::cli {

// The file that `name` stands for: itself if it has a slash, otherwise found in PATH.
// Throws Failure: kExitNotFound, or kExitCannotExecute when a file was found that may not be executed.
[[nodiscard]] std::string find_program(const std::string& name);
// Throws Failure if `program`, or the interpreter of a script, cannot be executed or would ignore `library`.
void check_program(const std::string& program, const std::string& library);

}  // namespace freehold::cli
