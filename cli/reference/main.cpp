// SPDX-License-Identifier: MIT
// freehold_reference FOLDER: writes the manual pages and the completions of shells into the folder. Part of the build, not
// installed; what it writes is.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

#include "cli/reference/commands.hpp"
#include "cli/reference/completion.hpp"
#include "cli/reference/man_page.hpp"
#include "cli/support/failure.hpp"
#include "cli/support/output_file.hpp"

namespace {
namespace fs = std::filesystem;
using namespace freehold::cli;

void write_reference(const fs::path& folder) {
  const auto [root, version] = reference::command_line();
  for (const char* below : {"man", "bash", "zsh", "fish"}) fs::create_directories(folder / below);
  for (const reference::Command* command : reference::flattened(root))
    write_file(folder / "man" / reference::man_page_name(*command), reference::man_page(*command, version));
  write_file(folder / "bash" / "freehold", reference::bash_completion(root));
  write_file(folder / "zsh" / "_freehold", reference::zsh_completion(root));
  write_file(folder / "fish" / "freehold.fish", reference::fish_completion(root));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: freehold_reference FOLDER\n", stderr);
    return kExitRefused;
  }
  try {
    write_reference(argv[1]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "freehold_reference: %s\n", error.what());
    return kExitRefused;
  }
}
