// SPDX-License-Identifier: MIT

#include <filesystem>
#include <string>

#include "cli/reference/commands.hpp"
#include "cli/support/failure.hpp"
#include "cli/support/output_file.hpp"

namespace freehold::cli::reference {
namespace {
namespace fs = std::filesystem;

void write(const Program& program, const fs::path& folder) {
  const auto [root, version] = command_line(program);
  for (const char* below : {"man", "bash", "zsh", "fish"}) fs::create_directories(folder / below);
  for (const Command* command : flattened(root))
    write_file(folder / "man" / man_page_name(*command), man_page(*command, version));
  write_file(folder / "bash" / program.name, bash_completion(root));
  write_file(folder / "zsh" / ('_' + program.name), zsh_completion(root));
  write_file(folder / "fish" / (program.name + ".fish"), fish_completion(root));
}

}  // namespace

int write_reference(const Program& program, int argc, char** argv) {
  return exit_code_of("freehold_reference", [&] {
    if (argc != 2) throw Failure(kExitRefused, "usage: freehold_reference FOLDER");
    write(program, argv[1]);
    return 0;
  });
}

}  // namespace freehold::cli::reference
