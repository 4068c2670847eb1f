// SPDX-License-Identifier: MIT
#include "cli/command.hpp"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <sstream>
#include <string_view>
#include <utility>

#include "tools/support/failure.hpp"
#include "tools/support/output_file.hpp"

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

// How many letters differ, or lie between the other's (Levenshtein 1966).
std::size_t distance(std::string_view one, std::string_view other) {
  std::vector<std::size_t> row(other.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < one.size(); ++i) {
    std::size_t above_left = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < other.size(); ++j) {
      const std::size_t replaced = above_left + (one[i] == other[j] ? 0 : 1);
      above_left = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, above_left + 1});
    }
  }
  return row.back();
}

// The parser's synopsis ends where the program's words begin.
class Formatter : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string name) const override {
    constexpr std::string_view kRoot = "freehold ";
    std::string usage = CLI::Formatter::make_usage(app, name);
    if (name.starts_with(kRoot) && runs_a_program(name.substr(kRoot.size())))
      usage.insert(usage.find_last_not_of('\n') + 1, " [--] PROGRAM [ARG]...");
    return usage;
  }
};

// "; did you mean 'doctor'? See", or "; see" where no name is near.
std::string suggestion(const std::string& word, const std::vector<std::string>& names) {
  const auto nearest =
      std::ranges::min_element(names, {}, [&word](const std::string& name) { return distance(word, name); });
  const bool is_near = nearest != names.end() && distance(word, *nearest) <= std::min<std::size_t>(2, nearest->size() / 2);
  return is_near ? fmt::format("; did you mean '{}'? See", *nearest) : "; see";
}

// The same for an option that the subcommand does not know.
std::string suggestion_for_option(const CLI::App& app, const std::string& complaint) {
  const std::string word = complaint.substr(complaint.find_last_of(' ') + 1);
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  std::vector<std::string> names;
  for (const CLI::Option* option : command->get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return word.starts_with("--") ? suggestion(word, names) : "; see";
}

// A word in the place of a subcommand must be one; behind those that run a program it may be the program.
void check_subcommands(const CLI::App& app, int argc, char** argv) {
  const CLI::App* command = &app;
  std::string path;
  for (int i = 1; i < argc && argv[i][0] != '-' && !runs_a_program(path); ++i) {
    std::vector<std::string> names;
    for (const CLI::App* below : command->get_subcommands([](const CLI::App*) { return true; }))
      names.push_back(below->get_name());
    if (names.empty()) return;
    if (std::ranges::find(names, argv[i]) == names.end())
      throw Failure(kExitRefused, fmt::format("there is no subcommand '{}'{} {}{}{} --help", printable(argv[i]),
                                              suggestion(argv[i], names), app.get_name(), path.empty() ? "" : " ", path));
    command = command->get_subcommand(argv[i]);
    path += (path.empty() ? "" : " ") + command->get_name();
  }
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

std::unique_ptr<CLI::App> make_parser(const Program& program, Invocation& invocation) {
  auto app = std::make_unique<CLI::App>(program.summary, program.name);
  app->set_version_flag("--version", program.name + " " FREEHOLD_VERSION);
  app->require_subcommand(1);
  app->formatter(std::make_shared<Formatter>());
  program.add_subcommands(*app, invocation);
  constexpr std::array<std::string_view, 4> kMostUsed{"run", "doctor", "heap", "stats"};
  for (CLI::App* const one : app->get_subcommands([](CLI::App*) { return true; }))
    if (std::ranges::find(kMostUsed, one->get_name()) != kMostUsed.end()) one->group("Most used");
  return app;
}

bool runs_a_program(const std::string& subcommand) {
  return subcommand == "run" || subcommand == "doctor" || subcommand == "check-preload" || subcommand == "heap profile";
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

int execute(const Program& program, int argc, char** argv) {
  Invocation invocation;
  const std::unique_ptr<CLI::App> parser = make_parser(program, invocation);
  CLI::App& app = *parser;
  check_subcommands(app, argc, argv);
  try {
    app.parse(own_words(app, {argv + 1, argv + argc}, invocation));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help, --version
      std::ostringstream text;
      const int code = app.exit(error, text, text);
      print_to_stdout(text.str());
      return code;
    }
    const std::string command =
        argc > 1 && has_subcommand(app, argv[1]) ? fmt::format("{} {}", program.name, argv[1]) : program.name;
    const std::string near =
        dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr ? suggestion_for_option(app, error.what()) : "; see";
    throw Failure(kExitRefused, fmt::format("{}{} {} --help", error.what(), near, command));
  }
  return invocation.exit_code;
}

int exit_code_of(const std::string& name, const std::function<int()>& action) {
  try {
    return action();
  } catch (const Failure& failure) {
    say(fmt::format("{}: {}\n", name, failure.what()));
    return failure.exit_code();
  } catch (const std::exception& error) {
    say(fmt::format("{}: {}\n", name, error.what()));
    return kExitRefused;
  }
}

}  // namespace freehold::cli
