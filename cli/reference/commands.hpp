// SPDX-License-Identifier: MIT
// The command line as plain data, read from the parser: manual pages and completions are written from it, so that the help
// texts are their one source.
#pragma once
#include <string>
#include <vector>

#include "cli/command.hpp"

namespace freehold::cli::reference {

struct Option {
  std::vector<std::string> names;  // "-k", "--keep-order"
  std::string help;
  std::string value;  // "FILE"; empty: a flag
  bool repeatable = false;

  // The value is the name of a file or folder.
  [[nodiscard]] bool takes_path() const;
};

// A word by its position.
struct Word {
  std::string name;  // "TRACE"
  std::string help;
  bool repeatable = false;

  [[nodiscard]] bool takes_path() const;
};

struct Command {
  std::vector<std::string> path;  // "freehold", "doctor", "attach"
  std::string summary;
  std::string footer;
  bool runs_a_program = false;  // ends in PROGRAM ARGS...
  std::vector<Option> options;
  std::vector<Word> words;
  std::vector<Command> subcommands;

  [[nodiscard]] const std::string& name() const { return path.back(); }
  // "freehold-doctor-attach"
  [[nodiscard]] std::string joined(const std::string& separator) const;
};

struct CommandLine {
  Command root;
  std::string version;  // "freehold 0.1.0"
};

[[nodiscard]] CommandLine command_line(const Program& program);
// The command and all below it.
[[nodiscard]] std::vector<const Command*> flattened(const Command& command);

// Completions for bash, zsh and fish: subcommands, options, files where an option takes one, and behind `run` and `doctor`
// the program's own.
[[nodiscard]] std::string bash_completion(const Command& root);
[[nodiscard]] std::string zsh_completion(const Command& root);
[[nodiscard]] std::string fish_completion(const Command& root);

// The manual pages of the command and its subcommands, in man(7)'s macros.

// "freehold-doctor.1"
[[nodiscard]] std::string man_page_name(const Command& command);
// `release` is the name and version for the page's foot: "freehold 0.1.0".
[[nodiscard]] std::string man_page(const Command& command, const std::string& release);

// Writes the manual pages and the completions of shells into a folder.

// The main() of a program with one argument, the folder; `program` is what it describes.
[[nodiscard]] int write_reference(const Program& program, int argc, char** argv);

}  // namespace freehold::cli::reference
