// SPDX-License-Identifier: MIT
// The options of a subcommand. Wraps CLI11, whose headers cost five seconds in every file that includes them; only
// command_line.cpp, command.cpp and reference/commands.cpp do.
//
//   Command command(app, "scale", "Measure how allocators scale");
//   command.add_option("--repeat", options.repeat, "Number of sets [3]", "N");
//   command.on_use([&] { invocation.exit_code = run_scale(options); });
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace freehold::inline tools {

// Refers to a command of the parser; may be copied. The values given to its functions must outlive the parsing.
class Command {
 public:
  Command(CLI::App& parent, const std::string& name, const std::string& summary);
  Command add_subcommand(const std::string& name, const std::string& summary);

  // "--repeat"; `type` stands behind it in the help: "N".
  void add_option(const std::string& name, std::optional<std::string>& value, const std::string& help,
                  const std::string& type);
  // The same, with its value behind "=", "--aged=FILE", or with none, "--aged", which then is `without`.
  void add_option_or_flag(const std::string& name, std::optional<std::string>& value, const std::string& help,
                          const std::string& type, const std::string& without);
  // May be given several times.
  void add_repeatable(const std::string& name, std::vector<std::string>& values, const std::string& help,
                      const std::string& type);
  // "--quick"; "-k,--keep-order"
  void add_flag(const std::string& name, bool& value, const std::string& help);
  // Words by their position, without a dash: up to `most`, 0: any number.
  void add_words(const std::string& name, std::vector<std::string>& values, const std::string& help, const std::string& type,
                 int most = 0);

  // Below the options in the help.
  void footer(const std::string& text);
  // The command's action. Not called if the user chose a subcommand of it.
  void on_use(std::function<void()> action);

 private:
  explicit Command(CLI::App& app) : app_(&app) {}

  CLI::App* app_;
};

}  // namespace freehold::inline tools
