// Finds the program that a command line names, as the shell would, and says beforehand why Freehold could not help it:
// LD_PRELOAD is ignored in silence by static and setuid programs, and by programs for another machine or C library.
// The reason and the way out are one line. Scripts are followed to their interpreter.
#pragma once
#include <string>

namespace freehold::cli {

// The file that `name` stands for: itself if it has a slash, otherwise found in PATH.
// Throws Failure: kExitNotFound, or kExitCannotExecute when a file was found that may not be executed.
[[nodiscard]] std::string find_program(const std::string& name);
// Throws Failure if `program`, or the interpreter of a script, cannot be executed or would ignore `library`.
void check_program(const std::string& program, const std::string& library);

}  // namespace freehold::cli
