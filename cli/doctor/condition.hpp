// SPDX-License-Identifier: MIT
// Conditions on what was measured, for --fail-if: "allocator > 10% and lost > 20%". A figure is known within limits, so a
// condition has three answers: it holds if it holds for every value within them, it does not if it does for none, and is
// undecided otherwise. "and", "or" and "not" keep to that (Kleene's logic).
//
//   condition  = term { ("or" | "||") term }
//   term       = factor { ("and" | "&&") factor }
//   factor     = ("not" | "!") factor | "(" condition ")" | comparison
//   comparison = FIGURE (">" | ">=" | "<" | "<=") NUMBER | "cause" ("==" | "!=") CAUSE | FLAG
//   FIGURE     = NAME [ "(" ARGUMENT ")" ]        NUMBER = "10%" | "0.1" | "1.5" | "1.5x" | "200M"
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "freehold/doctor/analysis/verdict.hpp"

namespace freehold::cli::doctor {

enum class Answer : std::uint8_t { kNo, kUndecided, kYes };  // ascending: "and" is the least, "or" the greatest

enum class WordKind : std::uint8_t {
  kShare,  // of a whole: "10%"
  kRatio,  // of two figures: "1.5"
  kBytes,  // "200M", "1.5GiB"
  kFlag,
  kCause,
};

// The causes that a question may find. Each group stands for several of them.
struct CauseNames {
  std::vector<std::string_view> causes;
  std::vector<std::pair<std::string_view, std::vector<std::string_view>>> groups;
};
// Those of the question of time.
[[nodiscard]] const CauseNames& time_causes();

// What a condition may name.
struct Word {
  std::string_view name;
  WordKind kind;
  bool has_argument = false;                     // "gain(freehold)"; of a flag: it may have one
  const CauseNames& (*causes)() = &time_causes;  // of kCause
};

// What is known. Keys are as in a condition: "lost", "gain(freehold)".
struct Facts {
  std::map<std::string, freehold::doctor::Estimate> figures;
  std::map<std::string, bool> flags;
  std::optional<std::string_view> cause;         // its name, that of an enumerator: it lasts
  std::string why_unknown = "was not measured";  // of a figure that is missing
};

class Condition {
 public:
  // Throws Failure: one line that begins with `option`, says what is wrong and what would be right.
  Condition(std::string_view option, std::string text, std::span<const Word> words);

  struct Judgement {
    Answer answer = Answer::kUndecided;
    std::vector<std::string> because;  // a clause for each comparison: "lost is 60% (55 to 62%)"
    bool is_between_limits = false;    // a figure that was measured is undecided, rather than one that was not
  };
  [[nodiscard]] Judgement judge(const Facts& facts) const;
  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  // The arguments that were given to any figure: the treatments that must be known.
  [[nodiscard]] const std::set<std::string>& arguments() const noexcept { return arguments_; }

 private:
  friend class ConditionParser;

  enum class Kind : std::uint8_t { kOr, kAnd, kNot, kFigure, kFlag, kCause };
  enum class Order : std::uint8_t { kGreater, kAtLeast, kLess, kAtMost };
  struct Node {
    Kind kind;
    std::size_t left = 0, right = 0;  // nodes
    std::string figure = {};          // or flag
    WordKind word = WordKind::kRatio;
    Order order = Order::kGreater;
    double number = 0;
    std::vector<std::string_view> causes = {};
    bool negated = false;  // "!="
  };

  [[nodiscard]] Answer judge(const Node& node, const Facts& facts, std::vector<std::string>& because) const;
  [[nodiscard]] bool is_between_limits(const Facts& facts) const;
  static Answer judge_figure(const Node& node, const Facts& facts, std::vector<std::string>& because);
  static Answer judge_flag(const Node& node, const Facts& facts, std::vector<std::string>& because);
  static Answer judge_cause(const Node& node, const Facts& facts, std::vector<std::string>& because);

  std::string text_;
  std::vector<Node> nodes_;  // the root last
  std::set<std::string> arguments_;
};

}  // namespace freehold::cli::doctor
