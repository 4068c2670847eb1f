// SPDX-License-Identifier: MIT
#include "cli/reference/commands.hpp"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

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
          .required = option.get_required(),
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

}  // namespace freehold::cli::reference
