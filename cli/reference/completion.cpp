// SPDX-License-Identifier: MIT
#include "cli/reference/commands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace freehold::cli::reference {
namespace {

// A word of a shell, in single quotes: `quote` is how a quote is written within them.
std::string quoted(std::string_view text, std::string_view quote) {
  std::string safe = "'";
  for (const char letter : text) {
    if (letter == '\'') {
      safe += quote;
    } else {
      safe += letter;
    }
  }
  return safe + "'";
}
constexpr std::string_view kPosixQuote = "'\\''";
constexpr std::string_view kFishQuote = "\\'";

std::string names_of(const std::vector<Command>& commands) {
  std::vector<std::string_view> names;
  for (const Command& one : commands) names.push_back(one.name());
  return fmt::format("{}", fmt::join(names, " "));
}

// The names of the options that `chosen` says, between blanks.
std::string option_names(const Command& command, auto chosen) {
  std::vector<std::string_view> names;
  for (const Option& option : command.options) {
    if (chosen(option)) names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return fmt::format("{}", fmt::join(names, " "));
}

bool takes_value(const Option& option) { return !option.value.empty(); }
bool any_option(const Option&) { return true; }
bool takes_paths(const Command& command) { return std::ranges::any_of(command.words, &Word::takes_path); }

// ---- bash ----

std::string bash_case(const Command& command) {
  return fmt::format("    {}) subcommands='{}' program={} words={} options='{}' values='{}' paths='{}' ;;\n",
                     quoted(command.joined(" "), kPosixQuote), names_of(command.subcommands),
                     command.runs_a_program ? "1" : "", takes_paths(command) ? "1" : "", option_names(command, any_option),
                     option_names(command, takes_value),
                     option_names(command, [](const Option& option) { return option.takes_path(); }));
}

constexpr std::string_view kBashFunctions = R"(
# The program behind `run` and `doctor` is completed as if it stood alone.
_freehold_program() {
  if declare -F _command_offset >/dev/null; then
    _command_offset "$1"
  elif (($1 == COMP_CWORD)); then
    mapfile -t COMPREPLY < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}")
  else
    compopt -o default 2>/dev/null
  fi
}

_freehold_files() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -f -- "$1")
}

_freehold() {
  local cur=${COMP_WORDS[COMP_CWORD]} command=freehold word i
  local subcommands program words options values paths
  COMPREPLY=()
  _freehold_command "$command"
  for ((i = 1; i < COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    if [[ $word == -- && $program ]]; then
      _freehold_program $((i + 1))
      return
    elif [[ " $values " == *" $word "* ]]; then
      if ((++i == COMP_CWORD)); then
        [[ " $paths " == *" $word "* ]] && _freehold_files "$cur"
        return
      fi
    elif [[ $word != -* && " $subcommands " == *" $word "* ]]; then
      command+=" $word"
      _freehold_command "$command"
    elif [[ $word != -* && $program ]]; then
      _freehold_program "$i"
      return
    fi
  done
  if [[ $cur == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
    return
  fi
  [[ $program ]] && _freehold_program "$COMP_CWORD"
  [[ $words ]] && _freehold_files "$cur"
  mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W "$subcommands" -- "$cur")
}
complete -F _freehold freehold
)";

// ---- zsh ----

// _arguments reads [, ] and : in a description.
std::string zsh_text(std::string_view text) {
  std::string safe;
  for (const char letter : text) {
    if (letter == '[' || letter == ']' || letter == ':' || letter == '\\') safe += '\\';
    safe += letter;
  }
  return safe;
}

std::string zsh_option(const Option& option) {
  const std::string names = fmt::format("{}", fmt::join(option.names, " "));
  std::string text;
  for (const std::string& name : option.names) {
    const std::string others = option.repeatable ? "*" : option.names.size() > 1 ? "(" + names + ")" : "";
    std::string one = others + name;
    if (takes_value(option)) one += name.starts_with("--") ? "=" : "";
    one += "[" + zsh_text(option.help) + "]";
    if (takes_value(option)) one += ":" + zsh_text(option.value) + ":" + (option.takes_path() ? "_files" : "");
    text += " \\\n    " + quoted(one, kPosixQuote);
  }
  return text;
}

std::string zsh_function(const Command& command) {
  const bool first_word = !command.subcommands.empty() || command.runs_a_program;
  std::string text =
      fmt::format("_{}() {{\n  local curcontext=\"$curcontext\" state line\n  typeset -A opt_args\n", command.joined("_"));
  // Options end with the first word that is none, if it is a subcommand or a program.
  text += fmt::format("  _arguments -C -S{}", first_word ? " -A '-*'" : "");
  for (const Option& option : command.options) text += zsh_option(option);
  if (first_word) text += " \\\n    '1: :->first' \\\n    '*:: :->rest'";
  for (const Word& word : command.words) {
    text +=
        " \\\n    " + quoted(fmt::format("*:{}:{}", zsh_text(word.name), word.takes_path() ? "_files" : ""), kPosixQuote);
  }
  text += "\n";
  if (first_word) {
    text += "  case $state in\n  first)\n    local -a subcommands=(";
    for (const Command& below : command.subcommands)
      text += "\n      " + quoted(below.name() + ":" + zsh_text(below.summary), kPosixQuote);
    text += ")\n    (( $#subcommands )) && _describe -t commands subcommand subcommands\n";
    text += command.runs_a_program ? "    _command_names -e\n    ;;\n" : "    ;;\n";
    text += "  rest)\n    case $words[1] in\n";
    for (const Command& below : command.subcommands)
      text += fmt::format("    {}) _{} ;;\n", below.name(), below.joined("_"));
    text += command.runs_a_program ? "    *) _normal ;;\n" : "";
    text += "    esac\n    ;;\n  esac\n";
  }
  return text + "}\n\n";
}

// ---- fish ----

constexpr std::string_view kFishFunctions = R"(
# Sets `at`, the subcommand so far ("doctor attach"; "run program" within the program's own words), and `first`, the place of
# the program's first word.
function __freehold_read --no-scope-shadowing
    set at
    set first 1
    set -l skip 0
    for word in (commandline -opc)[2..]
        set first (math $first + 1)
        if test $skip = 1
            set skip 0
        else if contains -- "$at $word" $__freehold_values
            set skip 1
        else if contains -- (string join ' ' -- $at $word) $__freehold_subcommands
            set at $at $word
        else if contains -- "$at" $__freehold_runs; and test "$word" = --
            set at $at program
            set first (math $first + 1)
            break
        else if contains -- "$at" $__freehold_runs; and not string match -q -- '-*' $word
            set at $at program
            break
        end
    end
end

function __freehold_at
    set -l at
    set -l first
    __freehold_read
    test "$at" = "$argv"
end

# Completes the program as if it stood alone.
function __freehold_program
    set -l at
    set -l first
    __freehold_read
    set -l words (commandline -opc)
    if not contains -- program $at
        string match -q -- '-*' (commandline -ct); and return
        set first (math (count $words) + 1)
    end
    complete -C (string join ' ' -- (string escape -- $words[$first..]) (commandline -ct))
end

complete -c freehold -f
)";

std::string below_root(const Command& command) {
  const std::string all = command.joined(" ");
  return all.substr(std::min(all.size(), command.path.front().size() + 1));
}

std::string fish_condition(const std::string& path) { return quoted("__freehold_at " + path, kFishQuote); }

std::string fish_option(const Option& option, const std::string& condition) {
  std::string line = "complete -c freehold -n " + condition;
  for (const std::string& name : option.names)
    line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (takes_value(option)) line += option.takes_path() ? " -r -F" : " -x";
  return line + " -d " + quoted(option.help, kFishQuote) + "\n";
}

std::string fish_lines(const Command& command) {
  const std::string path = below_root(command), condition = fish_condition(path);
  std::string text;
  for (const Option& option : command.options) text += fish_option(option, condition);
  for (const Command& below : command.subcommands) {
    text +=
        fmt::format("complete -c freehold -n {} -a {} -d {}\n", condition, below.name(), quoted(below.summary, kFishQuote));
  }
  if (takes_paths(command)) text += fmt::format("complete -c freehold -n {} -F\n", condition);
  if (command.runs_a_program) {
    for (const std::string& place : {condition, fish_condition(path + " program")})
      text += fmt::format("complete -c freehold -n {} -a '(__freehold_program)'\n", place);
  }
  return text;
}

}  // namespace

std::string bash_completion(const Command& root) {
  std::string text = "# Completion of freehold for bash.\n_freehold_command() {\n  case $1 in\n";
  for (const Command* command : flattened(root)) text += bash_case(*command);
  return text + "  esac\n}\n" + std::string(kBashFunctions);
}

std::string zsh_completion(const Command& root) {
  std::string text = "#compdef freehold\n# Completion of freehold for zsh.\n\n";
  for (const Command* command : flattened(root)) text += zsh_function(*command);
  return text + fmt::format("_{} \"$@\"\n", root.name());
}

std::string fish_completion(const Command& root) {
  std::vector<std::string> subcommands, runs, values;
  std::string lines;
  for (const Command* command : flattened(root)) {
    const std::string path = below_root(*command);
    if (!path.empty()) subcommands.push_back(quoted(path, kFishQuote));
    if (command->runs_a_program) runs.push_back(quoted(path, kFishQuote));
    for (const Option& option : command->options) {
      if (!takes_value(option)) continue;
      for (const std::string& name : option.names) values.push_back(quoted(path + " " + name, kFishQuote));
    }
    lines += fish_lines(*command);
  }
  return fmt::format(
      "# Completion of freehold for fish.\nset -g __freehold_subcommands {}\nset -g __freehold_runs {}\n"
      "set -g __freehold_values {}\n{}{}",
      fmt::join(subcommands, " "), fmt::join(runs, " "), fmt::join(values, " "), kFishFunctions, lines);
}

}  // namespace freehold::cli::reference
