// SPDX-License-Identifier: MIT
#include "cli/reference/commands.hpp"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <filesystem>

#include "tools/support/failure.hpp"
#include "tools/support/output_file.hpp"

namespace freehold::cli::reference {
namespace {

Option option_of(const CLI::Option& option) {
  Option made;
  for (const std::string& name : option.get_snames()) made.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) made.names.push_back("--" + name);
  made.help = option.get_description();
  if (option.get_expected_min() > 0) made.value = option.get_type_name();
  made.repeatable = option.get_expected_max() > 1;
  return made;
}

Word word_of(const CLI::Option& option) {
  // A type that says more than "TEXT" is how the user knows the word.
  const std::string type = option.get_type_name();
  return {.name = type.empty() || type == "TEXT" ? option.get_name(true) : type,
          .help = option.get_description(),
          .repeatable = option.get_expected_max() > 1};
}

Command command_of(const CLI::App& app, std::vector<std::string> path) {
  Command made;
  made.path = std::move(path);
  made.summary = app.get_description();
  made.footer = app.get_footer();
  made.runs_a_program = runs_a_program(fmt::format("{}", fmt::join(made.path.begin() + 1, made.path.end(), " ")));
  for (const CLI::Option* option : app.get_options()) {
    if (option->nonpositional()) {
      made.options.push_back(option_of(*option));
    } else {
      made.words.push_back(word_of(*option));
    }
  }
  for (const CLI::App* one : app.get_subcommands([](const CLI::App*) { return true; })) {
    std::vector<std::string> below = made.path;
    below.push_back(one->get_name());
    made.subcommands.push_back(command_of(*one, std::move(below)));
  }
  return made;
}

void write(const Program& program, const std::filesystem::path& folder) {
  const auto [root, version] = command_line(program);
  for (const char* below : {"man", "bash", "zsh", "fish"}) std::filesystem::create_directories(folder / below);
  for (const Command* command : flattened(root))
    write_file(folder / "man" / man_page_name(*command), man_page(*command, version));
  write_file(folder / "bash" / program.name, bash_completion(root));
  write_file(folder / "zsh" / ('_' + program.name), zsh_completion(root));
  write_file(folder / "fish" / (program.name + ".fish"), fish_completion(root));
}

}  // namespace

bool Option::takes_path() const { return value == "FILE" || value == "FOLDER" || value == "PATH" || value == "FORMAT=FILE"; }

bool Word::takes_path() const { return name == "FILE" || name == "TRACE"; }

std::string Command::joined(const std::string& separator) const { return fmt::format("{}", fmt::join(path, separator)); }

CommandLine command_line(const Program& program) {
  Invocation invocation;
  const auto parser = make_parser(program, invocation);
  return {.root = command_of(*parser, {parser->get_name()}), .version = parser->version()};
}

std::vector<const Command*> flattened(const Command& command) {
  std::vector<const Command*> all{&command};
  for (const Command& below : command.subcommands) {
    for (const Command* one : flattened(below)) all.push_back(one);
  }
  return all;
}

int write_reference(const Program& program, int argc, char** argv) {
  return exit_code_of("freehold_reference", [&] {
    if (argc != 2) throw Failure(kExitRefused, "usage: freehold_reference FOLDER");
    write(program, argv[1]);
    return 0;
  });
}

}  // namespace freehold::cli::reference
