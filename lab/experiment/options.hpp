// SPDX-License-Identifier: MIT
// The options of an experiment as a table. A row names the option, the member of Settings that it sets, and its help. The
// parser, the defaults in the help and the "settings" of the JSON follow from the rows.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "lab/experiment/command.hpp"
#include "tools/output/json.hpp"
#include "tools/support/arguments.hpp"
#include "tools/support/command_line.hpp"

namespace freehold::lab {

template <class Settings>
class OptionTable {
 public:
  using Json = nlohmann::ordered_json;
  using Set = std::function<void(Settings& settings, const std::string& option, const std::string& text)>;
  using Get = std::function<Json(const Settings& settings)>;

  // A row whose words have a meaning of their own. In the JSON it is named as the option: "--slot-bytes" as "slot_bytes".
  OptionTable& row(std::string option, const std::string& help, std::string type, Set set, Get get = nullptr) {
    std::string key = option.substr(2);
    std::ranges::replace(key, '-', '_');
    rows_.push_back({std::move(option), help, std::move(type), std::move(key), std::move(set), std::move(get), {}, false});
    return *this;
  }
  // The last row has this name in the JSON.
  OptionTable& as(const char* key) {
    rows_.back().key = key;
    return *this;
  }
  // The last row is not in the JSON.
  OptionTable& unwritten() {
    rows_.back().get = nullptr;
    return *this;
  }
  // A member that has no option.
  template <class T>
  OptionTable& written(const char* key, T Settings::* member) {
    rows_.push_back({"", "", "", key, nullptr, getter(member), {}, false});
    return *this;
  }

  // `what` may end in the default, in brackets; otherwise the value of a new Settings is added.
  template <class T>
  OptionTable& number(std::string option, T Settings::* member, std::uint32_t least, std::uint32_t most,
                      const std::string& what, std::string type = "N") {
    return row(
        std::move(option), with_default(what, std::to_string(Settings{}.*member)), std::move(type),
        [=](Settings& settings, const std::string& name, const std::string& text) {
          settings.*member = parse_number(name, text, least, most);
        },
        getter(member));
  }
  OptionTable& numbers(std::string option, std::vector<std::uint32_t> Settings::* member, std::uint32_t least,
                       std::uint32_t most, const std::string& what, std::vector<std::uint32_t> always = {}) {
    return row(
        std::move(option), with_default(what, fmt::format("{}", fmt::join(Settings{}.*member, ","))), "LIST",
        [=](Settings& settings, const std::string& name, const std::string& text) {
          settings.*member = parse_numbers(name, text, least, most, always);
        },
        getter(member));
  }
  // `all`: the values that have names. `what` may be empty, because the help lists the names.
  template <class T>
  OptionTable& names(std::string option, std::vector<T> Settings::* member, const auto& all, const std::string& what = "") {
    const auto joined = [](const auto& values, const char* between) {
      std::vector<std::string_view> words;
      for (const T value : values) words.push_back(name_of(value));
      return fmt::format("{}", fmt::join(words, between));
    };
    const std::vector<T> usual = Settings{}.*member;
    return row(
        std::move(option),
        with_default(joined(all, ", ") + (what.empty() ? "" : ": ") + what,
                     usual.size() == all.size() ? "all" : joined(usual, ",")),
        "LIST",
        [=](Settings& settings, const std::string& name, const std::string& text) {
          settings.*member = parse_names<T>(name, text, all);
        },
        [=](const Settings& settings) { return names_json(settings.*member); });
  }
  // The candidates to compare, out of `all`; --list names them and their sources. `noun` is what they are, "pools", and
  // json(candidate) an element of the JSON.
  template <class Candidate>
  OptionTable& candidates(std::string option, std::vector<const Candidate*> Settings::* member,
                          const std::vector<Candidate>& (*all)(), const std::string& noun,
                          Json (*json)(const Candidate* candidate)) {
    list_ = [=] { return print_list(all()); };
    list_help_ = fmt::format("List all {} and where they come from", noun);
    return row(
        std::move(option), fmt::format("The {} to measure [all]", noun), "LIST",
        [=](Settings& settings, const std::string& name, const std::string& text) {
          settings.*member = parse_candidates(all(), name, text);
        },
        [=](const Settings& settings) { return list_json(settings.*member, json); });
  }
  OptionTable& flag(std::string option, bool Settings::* member, const std::string& help) {
    return row(std::move(option), help, "",
               [=](Settings& settings, const std::string&, const std::string&) { settings.*member = true; });
  }

  // The options of every experiment that measures: --repeat, --quick, and --time with a text for it. `quick` prepares the
  // settings of a short run; options that are given override it.
  OptionTable& measured(const char* time, const char* quick_help, void (*quick)(Settings& settings)) {
    number("--repeat", &Settings::repeat, 1, 1000, "Number of sets of measurements, for medians");
    if constexpr (requires(Settings settings) { settings.milliseconds; })
      number("--time", &Settings::milliseconds, 1, 3'600'000, time, "MS").as("milliseconds");
    quick_help_ = quick_help;
    quick_ = quick;
    return *this;
  }

  // To be called once. Pre: *this outlives the parsing. `page`: a sentence that names the documentation.
  void add_to(Command& command, const std::string& page) {
    if (list_) command.add_flag("--list", listed_, list_help_);
    for (Row& row : rows_) {
      if (row.option.empty()) continue;
      if (row.type.empty())
        command.add_flag(row.option, row.is_set, row.help);
      else
        command.add_option(row.option, row.text, row.help, row.type);
    }
    if (quick_ != nullptr) command.add_flag("--quick", is_quick_, quick_help_);
    files_.add_options(command, quick_ != nullptr);
    command.footer("Ctrl-C ends the experiment early and keeps the finished measurements. " + page);
  }

  // After the parsing: what the user said.
  [[nodiscard]] bool has(std::string_view option) const {
    return std::ranges::any_of(rows_, [&](const Row& row) { return row.option == option && row.text; });
  }
  [[nodiscard]] const ResultFiles& files() const { return files_; }
  // Throws Failure.
  [[nodiscard]] Settings settings() const {
    Settings settings;
    if (is_quick_) quick_(settings);
    for (const Row& row : rows_) {
      if (row.text || row.is_set) row.set(settings, row.option, row.text.value_or(""));
    }
    return settings;
  }
  // The exit code of --list; none: it was not given.
  [[nodiscard]] std::optional<int> list() const { return listed_ ? std::optional(list_()) : std::nullopt; }

  [[nodiscard]] Json json(const Settings& settings) const {
    Json all;
    for (const Row& row : rows_) {
      if (row.get) all[row.key] = row.get(settings);
    }
    return all;
  }

 private:
  struct Row {
    std::string option, help, type;  // no type: a flag
    std::string key;
    Set set;
    Get get;                          // null: not in the JSON
    std::optional<std::string> text;  // as the user gave it
    bool is_set = false;              // a flag is set
  };

  template <class T>
  [[nodiscard]] static Get getter(T Settings::* member) {
    return [member](const Settings& settings) { return Json(settings.*member); };
  }
  [[nodiscard]] static std::string with_default(const std::string& what, const std::string& text) {
    return what.ends_with(']') ? what : fmt::format("{} [{}]", what, text);
  }

  std::deque<Row> rows_;  // the parser keeps addresses
  std::function<int()> list_;
  std::string list_help_;
  void (*quick_)(Settings& settings) = nullptr;
  const char* quick_help_ = "";
  ResultFiles files_;
  bool listed_ = false;
  bool is_quick_ = false;
};

// {"elapsed_ns": …}; `members` is a tuple of pairs of a name and a pointer to a member.
template <class T, class... Members>
[[nodiscard]] nlohmann::ordered_json members_json(const T& value, const std::tuple<Members...>& members) {
  nlohmann::ordered_json json;
  std::apply([&](const auto&... member) { ((json[member.first] = value.*member.second), ...); }, members);
  return json;
}

}  // namespace freehold::lab
