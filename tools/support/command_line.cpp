// SPDX-License-Identifier: MIT
#include "tools/support/command_line.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <utility>

namespace freehold::inline tools {

Command::Command(CLI::App& parent, const std::string& name, const std::string& summary)
    : app_(parent.add_subcommand(name, summary)) {}

Command Command::add_subcommand(const std::string& name, const std::string& summary) {
  return Command(*app_->add_subcommand(name, summary));
}

void Command::add_option(const std::string& name, std::optional<std::string>& value, const std::string& help,
                         const std::string& type) {
  app_->add_option(name, value, help)->type_name(type);
}

void Command::add_option_or_flag(const std::string& name, std::optional<std::string>& value, const std::string& help,
                                 const std::string& type, const std::string& without) {
  app_->add_option(name, value, help)->type_name(type)->expected(0, 1)->default_str(without);
}

void Command::add_repeatable(const std::string& name, std::vector<std::string>& values, const std::string& help,
                             const std::string& type) {
  app_->add_option(name, values, help)->type_name(type)->allow_extra_args(false);
}

void Command::add_flag(const std::string& name, bool& value, const std::string& help) { app_->add_flag(name, value, help); }

void Command::add_words(const std::string& name, std::vector<std::string>& values, const std::string& help,
                        const std::string& type, int most) {
  CLI::Option* const option = app_->add_option(name, values, help)->type_name(type);
  if (most > 0) option->expected(0, most);
}

void Command::footer(const std::string& text) { app_->footer(text); }

void Command::on_use(std::function<void()> action) {
  app_->callback([app = app_, action = std::move(action)] {
    if (app->get_subcommands().empty()) action();
  });
}

}  // namespace freehold::inline tools
