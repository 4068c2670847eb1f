// SPDX-License-Identifier: MIT
// The freehold command: finds the subcommand, and turns every error into one line and an exit code.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <iterator>
#include <memory>
#include <sstream>
#include <string_view>

#include "cli/command.hpp"
#include "cli/pools/worker.hpp"
#include "cli/scale/via_pool.hpp"
#include "cli/scale/worker.hpp"
#include "cli/support/failure.hpp"
#include "cli/support/standard_streams.hpp"
#include "cli/timers/worker.hpp"

namespace {
using namespace freehold::cli;

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

}  // namespace

int main(int argc, char** argv) {
  // Workers first, before any other code allocates: they measure the allocator.
  if (argc > 1 && argv[1] == std::string_view(scale::kWorkerCommand)) return scale::worker_main({argv + 2, argv + argc});
  if (argc > 1 && argv[1] == std::string_view(pools::kWorkerCommand)) return pools::worker_main({argv + 2, argv + argc});
  if (argc > 1 && argv[1] == std::string_view(timers::kWorkerCommand)) return timers::worker_main({argv + 2, argv + argc});
  if (argc > 1 && argv[1] == std::string_view(scale::kPoolWorkerCommand)) return scale::pool_worker_main();
  try {
    return execute(argc, argv);
  } catch (const Failure& failure) {
    fmt::print(stderr, "freehold: {}\n", failure.what());
    return failure.exit_code();
  } catch (const std::exception& error) {
    fmt::print(stderr, "freehold: {}\n", error.what());
    return kExitRefused;
  }
}
