// SPDX-License-Identifier: MIT
#include "cli/command.hpp"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <iterator>
#include <sstream>

#include "cli/support/failure.hpp"
#include "cli/support/standard_streams.hpp"

namespace freehold::cli {
namespace {

bool takes_value(const CLI::App& command, const std::string& word) {
  const CLI::Option* option = command.get_option_no_throw(word);
  return option != nullptr && option->get_expected_min() > 0;
}

bool has_subcommand(const CLI::App& app, const std::string& name) {
  return !app.get_subcommands([&name](const CLI::App* command) { return command->get_name() == name; }).empty();
}

// "doctor compare": a program of that name is examined behind "--".
bool names_subcommand(const CLI::App& app, const std::vector<std::string>& words) {
  return words.size() > 1 && !words[1].empty() && words[1].front() != '-' &&
         has_subcommand(*app.get_subcommand(words[0]), words[1]);
}

// The words behind "freehold", in the parser's order (last first), without the program to run.
std::vector<std::string> own_words(const CLI::App& app, std::vector<std::string> words, Invocation& invocation) {
  if (words.size() > 1 && words[0] == "doctor" && words[1] == "--attach") words[1] = "attach";
  const CLI::App* command = nullptr;
  std::size_t names = 1;
  if (!words.empty() && runs_a_program(words.front()) && !names_subcommand(app, words))
    command = app.get_subcommand(words.front());
  if (words.size() > 1 && runs_a_program(words[0] + ' ' + words[1])) {
    command = app.get_subcommand(words[0])->get_subcommand(words[1]);
    names = 2;
  }
  if (command != nullptr) {
    const auto first = words.begin() + static_cast<std::ptrdiff_t>(names);
    std::vector<std::string> behind(std::make_move_iterator(first), std::make_move_iterator(words.end()));
    invocation.program = cut_program(*command, behind);
    words.resize(names);
    std::ranges::move(behind, std::back_inserter(words));
  }
  std::ranges::reverse(words);
  return words;
}

}  // namespace

std::unique_ptr<CLI::App> make_parser(Invocation& invocation) {
  auto app = std::make_unique<CLI::App>(
      "A malloc and memory tools for multithreaded programs that do not get faster with more CPUs", "freehold");
  app->set_version_flag("--version", "freehold " FREEHOLD_VERSION);
  app->require_subcommand(1);
  add_run(*app, invocation);
  add_stats(*app, invocation);
  add_doctor(*app, invocation);
  add_heap(*app, invocation);
  add_replay(*app, invocation);
  add_scale(*app, invocation);
  add_pools(*app, invocation);
  add_simulate(*app, invocation);
  add_timers(*app, invocation);
  add_articles(*app, invocation);
  add_workers(*app, invocation);
  return app;
}

bool runs_a_program(const std::string& subcommand) {
  return subcommand == "run" || subcommand == "doctor" || subcommand == "heap profile";
}

std::vector<std::string> cut_program(const CLI::App& command, std::vector<std::string>& words) {
  auto word = words.begin();
  while (word != words.end() && word->size() > 1 && word->front() == '-' && *word != "--") {
    const bool value_follows = takes_value(command, *word);
    ++word;
    if (value_follows && word != words.end() && *word != "--") ++word;
  }
  const auto end_of_own = word;
  if (word != words.end() && *word == "--") ++word;
  std::vector<std::string> program(std::make_move_iterator(word), std::make_move_iterator(words.end()));
  words.erase(end_of_own, words.end());
  return program;
}

int execute(int argc, char** argv) {
  Invocation invocation;
  const std::unique_ptr<CLI::App> parser = make_parser(invocation);
  CLI::App& app = *parser;
  if (argc > 1 && argv[1][0] != '-' && !has_subcommand(app, argv[1])) {
    throw Failure(kExitRefused, fmt::format("there is no subcommand '{}'; see freehold --help", printable(argv[1])));
  }
  try {
    app.parse(own_words(app, {argv + 1, argv + argc}, invocation));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help, --version
      std::ostringstream text;
      const int code = app.exit(error, text, text);
      print_to_stdout(text.str());
      return code;
    }
    const std::string command = argc > 1 && has_subcommand(app, argv[1]) ? fmt::format("freehold {}", argv[1]) : "freehold";
    throw Failure(kExitRefused, fmt::format("{}; see {} --help", error.what(), command));
  }
  return invocation.exit_code;
}

}  // namespace freehold::cli
