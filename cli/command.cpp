// SPDX-License-Identifier: MIT
#include "cli/command.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <iterator>

namespace freehold::cli {
namespace {

bool takes_value(const CLI::App& command, const std::string& word) {
  const CLI::Option* option = command.get_option_no_throw(word);
  return option != nullptr && option->get_expected_min() > 0;
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

}  // namespace freehold::cli
