// SPDX-License-Identifier: MIT
#include "cli/reference/commands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <regex>
#include <string_view>

#include "freehold/alloc/process/options.hpp"

namespace freehold::cli::reference {
namespace {

// Text that roff takes as it is: a backslash, a dash that must stay one, and a line that would begin a macro are escaped.
std::string escaped(std::string_view text) {
  std::string safe;
  for (const char letter : text) {
    const bool begins_line = safe.empty() || safe.back() == '\n';
    if (begins_line && (letter == '.' || letter == '\'')) safe += "\\&";
    switch (letter) {
      case '\\': safe += "\\e"; break;
      case '-': safe += "\\-"; break;
      case '~': safe += "\\(ti"; break;
      case '^': safe += "\\(ha"; break;
      case '`': safe += "\\(ga"; break;
      case '\'': safe += "\\(aq"; break;
      default: safe += letter;
    }
  }
  constexpr std::string_view kEllipsis = "\xe2\x80\xa6";
  for (std::size_t at; (at = safe.find(kEllipsis)) != std::string::npos;) safe.replace(at, kEllipsis.size(), "...");
  return safe;
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char letter) { return static_cast<char>(std::toupper(letter)); });
  return text;
}

std::string bold(std::string_view text) { return "\\fB" + escaped(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + escaped(text) + "\\fR"; }

// The summary without the usage behind a colon, which the synopsis shows.
std::string headline(const Command& command) { return command.summary.substr(0, command.summary.find(": ")); }

std::string synopsis(const Command& command) {
  std::string line = bold(command.joined(" "));
  if (!command.options.empty()) line += " [" + italic("OPTION") + "]...";
  for (const Word& word : command.words) {
    line += " [" + italic(word.name) + (word.repeatable ? "..." : "") + "]";
  }
  if (command.runs_a_program) return fmt::format("{} [{}] {} [{}]...\n", line, bold("--"), italic("PROGRAM"), italic("ARG"));
  if (!command.subcommands.empty()) line += " " + italic("SUBCOMMAND") + " ...";
  return line + "\n";
}

std::string options_section(const Command& command) {
  std::string text = ".SH OPTIONS\n";
  for (const Option& option : command.options) {
    std::vector<std::string> names;
    std::ranges::transform(option.names, std::back_inserter(names), bold);
    text += fmt::format(".TP\n{}{}\n{}\n", fmt::join(names, ", "), option.value.empty() ? "" : " " + italic(option.value),
                        escaped(option.help));
  }
  return text;
}

std::string words_section(const Command& command) {
  std::string text = ".SH ARGUMENTS\n";
  for (const Word& word : command.words) text += fmt::format(".TP\n{}\n{}\n", italic(word.name), escaped(word.help));
  if (command.runs_a_program)
    text +=
        fmt::format(".TP\n{} [{}]...\nThe program to run, with its arguments; what follows {} is not read as an option.\n",
                    italic("PROGRAM"), italic("ARG"), bold("--"));
  return text;
}

std::string subcommands_section(const Command& command) {
  std::string text = ".SH SUBCOMMANDS\n";
  for (const Command& below : command.subcommands)
    text += fmt::format(".TP\n\\fB{}\\fR(1)\n{}\n", escaped(below.joined("-")), escaped(below.summary));
  return text;
}

// Text without Markdown: of a link its text, or nothing if brackets are around it.
std::string plain(const std::string& markdown) {
  static const std::regex code("`"), link(R"( \(\[[^\]]*\]\([^)]*\)\)|\[([^\]]*)\]\([^)]*\))");
  return std::regex_replace(std::regex_replace(markdown, code, ""), link, "$1");
}

std::string environment_section() {
  std::string text = ".SH ENVIRONMENT\nThe malloc reads these variables at the start of a program.\n";
  const auto add = [&](std::string name, const std::string& value, const std::string& effect) {
    text += fmt::format(".TP\n{} ({})\n{}\n", bold(upper(std::move(name))), escaped(plain(value)), escaped(plain(effect)));
  };
#define FREEHOLD_ADD(name, kind, value, shown, effect) add("FREEHOLD_" #name, shown, effect);
  FREEHOLD_OPTIONS(FREEHOLD_ADD)
#undef FREEHOLD_ADD
#define FREEHOLD_ADD(name, kind, value, shown, effect) add("FREEHOLD_CHECK_" #name, shown, effect);
  FREEHOLD_CHECK_OPTIONS(FREEHOLD_ADD)
#undef FREEHOLD_ADD
  return text;
}

std::string see_also(const Command& command) {
  std::vector<std::string> others;
  std::string parent;
  for (std::size_t depth = 0; depth + 1 < command.path.size(); ++depth) {
    parent += (depth == 0 ? "" : "-") + command.path[depth];
    others.push_back(fmt::format("\\fB{}\\fR(1)", escaped(parent)));
  }
  for (const Command& below : command.subcommands)
    others.push_back(fmt::format("\\fB{}\\fR(1)", escaped(below.joined("-"))));
  return others.empty() ? "" : fmt::format(".SH SEE ALSO\n{}\n", fmt::join(others, ",\n"));
}

}  // namespace

std::string man_page_name(const Command& command) { return command.joined("-") + ".1"; }

std::string man_page(const Command& command, const std::string& release) {
  std::string page =
      fmt::format(".TH \"{}\" 1 \"\" \"{}\" \"User Commands\"\n", escaped(upper(command.joined("-"))), escaped(release));
  // Names and options keep their dashes and are not hyphenated; ragged lines are easier to read than stretched ones.
  page += ".nh\n.ad l\n";
  page += fmt::format(".SH NAME\n{} \\- {}\n", escaped(command.joined("-")), escaped(headline(command)));
  page += ".SH SYNOPSIS\n" + synopsis(command);
  page += ".SH DESCRIPTION\n" + escaped(command.summary) + (command.summary.ends_with('.') ? "\n" : ".\n");
  if (!command.footer.empty()) page += ".PP\n" + escaped(command.footer) + "\n";
  if (!command.subcommands.empty()) page += subcommands_section(command);
  if (!command.words.empty() || command.runs_a_program) page += words_section(command);
  if (!command.options.empty()) page += options_section(command);
  if (command.path.size() == 1 && command.name() == kFreehold) page += environment_section();
  return page + see_also(command);
}

}  // namespace freehold::cli::reference
