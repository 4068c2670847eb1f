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
  bool required = false;
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

}  // namespace freehold::cli::reference
