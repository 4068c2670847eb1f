// SPDX-License-Identifier: MIT
// A command that cannot go on throws a Failure, which has an exit code and one line with the error and the way out. main()
// prints the line and exits; no other code prints errors. docs/run.md and docs/scale.md document the exit codes.
#pragma once
#include <stdexcept>
#include <string>
#include <string_view>

namespace freehold::inline tools {

inline constexpr int kExitPartial = 1;  // it ran, but not everything succeeded
inline constexpr int kExitRefused = 2;  // bad arguments, a program that cannot be helped, output that cannot be written
inline constexpr int kExitCannotExecute = 126;  // the program exists but cannot be executed (the shells' convention)
inline constexpr int kExitNotFound = 127;       // the program does not exist (the shells' convention)

class Failure : public std::runtime_error {
 public:
  Failure(int exit_code, const std::string& line) : std::runtime_error(line), exit_code_(exit_code) {}
  [[nodiscard]] int exit_code() const noexcept { return exit_code_; }

 private:
  int exit_code_;
};

// The text of an errno value, e.g. "No space left on device".
[[nodiscard]] std::string error_text(int error_number);
// `name` with control characters replaced by '?': a file name must not drive the terminal or break the one line.
[[nodiscard]] std::string printable(std::string_view name);
// Writes to standard error. If that is closed or full, the text is lost and the command goes on: exit codes stay.
void say(std::string_view text) noexcept;

}  // namespace freehold::inline tools
