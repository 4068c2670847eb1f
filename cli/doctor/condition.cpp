// SPDX-License-Identifier: MIT
#include "cli/doctor/condition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "cli/doctor/format.hpp"
#include "cli/support/failure.hpp"

namespace freehold::cli::doctor {
namespace {
using freehold::doctor::Cause;
using freehold::doctor::Estimate;

constexpr std::size_t kLongest = 2000;   // characters of a condition
constexpr unsigned kDeepest = 100;       // parentheses and "not" within each other
constexpr double kGreatestNumber = 1e9;  // before its unit

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

template <class Predicate>
std::vector<std::string_view> causes_where(Predicate is_meant) {
  std::vector<std::string_view> causes;
  for (std::size_t i = 0; i < freehold::doctor::kCauses; ++i) {
    if (is_meant(static_cast<Cause>(i))) causes.push_back(name_of(static_cast<Cause>(i)));
  }
  return causes;
}

// One cause by its name in the report, or a group of them; empty: neither.
std::vector<std::string_view> causes_named(const CauseNames& known, std::string_view name) {
  if (const auto cause = std::ranges::find(known.causes, name); cause != known.causes.end()) return {*cause};
  const auto group = std::ranges::find(known.groups, name, &decltype(known.groups)::value_type::first);
  return group != known.groups.end() ? group->second : std::vector<std::string_view>();
}

std::string all_causes(const CauseNames& known) {
  std::string list;
  for (const auto& [group, causes] : known.groups) list += fmt::format("{}{}", list.empty() ? "" : ", ", group);
  for (const std::string_view cause : known.causes) list += fmt::format("{}{}", list.empty() ? "" : ", ", cause);
  return list;
}

std::string mebibyte_range(const Estimate& bytes) {
  constexpr double kMebibyte = 1 << 20;
  return fmt::format("{:.1f} MiB ({:.1f} to {:.1f})", bytes.value / kMebibyte, bytes.low / kMebibyte,
                     bytes.high / kMebibyte);
}

std::string figure_text(const Estimate& is, WordKind kind) {
  if (kind == WordKind::kBytes) return mebibyte_range(is);
  return kind == WordKind::kRatio ? times_text(is) : percent_text(is);
}

Answer negation(Answer answer) { return static_cast<Answer>(2 - static_cast<int>(answer)); }

}  // namespace

const CauseNames& time_causes() {
  static const CauseNames names{
      .causes = causes_where([](Cause) { return true; }),
      .groups = {{"allocator", causes_where([](Cause cause) { return blames_allocator(cause); })},
                 {"own", causes_where([](Cause cause) { return name_of(cause).starts_with("own-"); })},
                 {"lock", {name_of(Cause::kAllocatorLock), name_of(Cause::kOwnLock)}},
                 {"sharing", {name_of(Cause::kAllocatorFalseSharing), name_of(Cause::kOwnSharing)}}}};
  return names;
}

// Recursive descent; the text is looked at once.
class ConditionParser {
 public:
  ConditionParser(Condition& into, std::string_view option, std::span<const Word> words)
      : into_(into), option_(option), words_(words), rest_(into.text_) {}

  void parse() {
    if (rest_.size() > kLongest) fail(fmt::format("more than {} characters; use several {}", kLongest, option_));
    static_cast<void>(condition(0));
    skip_blanks();
    if (!rest_.empty()) fail(fmt::format("'{}' after its end; join conditions with 'and' or 'or'", excerpt()));
  }

 private:
  using Node = Condition::Node;
  using Kind = Condition::Kind;

  [[noreturn]] void fail(const std::string& why) const {
    const std::string shown = into_.text_.size() > 100 ? into_.text_.substr(0, 100) + "…" : into_.text_;
    throw Failure(kExitRefused, fmt::format("{}: '{}': {}", option_, printable(shown), why));
  }
  [[nodiscard]] std::string excerpt() const { return printable(rest_.substr(0, 30)); }
  [[nodiscard]] std::string examples() const {
    std::string list;
    for (const Word& word : words_)
      list += fmt::format("{}{}{}", list.empty() ? "" : ", ", word.name,
                          word.has_argument && word.kind != WordKind::kFlag ? "(freehold)" : "");
    return list;
  }

  void skip_blanks() {
    while (!rest_.empty() && is_blank(rest_.front())) rest_.remove_prefix(1);
  }
  bool take(std::string_view symbol) {
    skip_blanks();
    if (!rest_.starts_with(symbol)) return false;
    rest_.remove_prefix(symbol.size());
    return true;
  }
  // A name, without taking it.
  [[nodiscard]] std::string_view next_name() {
    skip_blanks();
    std::size_t length = 0;
    while (length < rest_.size() &&
           (is_letter(rest_[length]) || (length > 0 && (is_digit(rest_[length]) || rest_[length] == '-'))))
      ++length;
    return rest_.substr(0, length);
  }
  bool take_word(std::string_view word) {
    if (next_name() != word) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  std::size_t add(Node node) {
    into_.nodes_.push_back(std::move(node));
    return into_.nodes_.size() - 1;
  }

  std::size_t condition(unsigned depth) {
    std::size_t left = term(depth);
    while (take_word("or") || take("||")) {
      const std::size_t right = term(depth);
      left = add({.kind = Kind::kOr, .left = left, .right = right});
    }
    return left;
  }

  std::size_t term(unsigned depth) {
    std::size_t left = factor(depth);
    while (take_word("and") || take("&&")) {
      const std::size_t right = factor(depth);
      left = add({.kind = Kind::kAnd, .left = left, .right = right});
    }
    return left;
  }

  std::size_t factor(unsigned depth) {
    if (depth > kDeepest) fail(fmt::format("more than {} parentheses within each other", kDeepest));
    if (take_word("not") || take("!")) return add({.kind = Kind::kNot, .left = factor(depth + 1)});
    if (take("(")) {
      const std::size_t inner = condition(depth + 1);
      if (!take(")")) fail(rest_.empty() ? "a ')' is missing" : fmt::format("')' is missing before '{}'", excerpt()));
      return inner;
    }
    return comparison();
  }

  std::size_t comparison() {
    const std::string name(next_name());
    if (name.empty())
      fail(rest_.empty() ? fmt::format("a figure is missing at its end: {}", examples())
                         : fmt::format("a figure belongs where '{}' stands: {}", excerpt(), examples()));
    const auto word = std::ranges::find(words_, std::string_view(name), &Word::name);
    if (word == words_.end()) fail(fmt::format("'{}' is not one of {}", printable(name), examples()));
    rest_.remove_prefix(name.size());
    if (word->kind == WordKind::kCause) return cause(word->causes());
    Node node{.kind = word->kind == WordKind::kFlag ? Kind::kFlag : Kind::kFigure, .figure = name, .word = word->kind};
    argument(*word, node);
    if (node.kind == Kind::kFigure) limit(node);
    return add(std::move(node));
  }

  void argument(const Word& word, Node& node) {
    skip_blanks();
    if (!word.has_argument) {
      if (rest_.starts_with("(")) fail(fmt::format("{} stands alone, without parentheses", word.name));
      return;
    }
    if (!take("(")) {
      if (word.kind == WordKind::kFlag) return;
      fail(fmt::format("{0} of which treatment? {0}(freehold), {0}(best)", word.name));
    }
    const std::size_t end = rest_.find(')');
    if (end == std::string_view::npos) fail(fmt::format("the parenthesis behind {} does not end", word.name));
    std::string_view name = trimmed(rest_.substr(0, end));
    if (name.size() >= 2 && (name.front() == '\'' || name.front() == '"') && name.back() == name.front())
      name = name.substr(1, name.size() - 2);
    if (name.empty()) fail(fmt::format("{0} of which treatment? {0}(freehold), {0}(best)", word.name));
    node.figure = fmt::format("{}({})", word.name, name);
    into_.arguments_.insert(std::string(name));
    rest_.remove_prefix(end + 1);
  }

  void limit(Node& node) {
    skip_blanks();
    if (rest_.starts_with("=") || rest_.starts_with("!="))
      fail(fmt::format("what is measured is never equal to a number: {} > … or {} < …", node.figure, node.figure));
    if (take(">="))
      node.order = Condition::Order::kAtLeast;
    else if (take("<="))
      node.order = Condition::Order::kAtMost;
    else if (take(">"))
      node.order = Condition::Order::kGreater;
    else if (take("<"))
      node.order = Condition::Order::kLess;
    else
      fail(fmt::format("one of >, >=, <, <= belongs behind {}", node.figure));
    number(node);
  }

  void number(Node& node) {
    skip_blanks();
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), node.number);
    if (error != std::errc() || !std::isfinite(node.number) || node.number < 0 || node.number > kGreatestNumber)
      fail(fmt::format("a number belongs behind {}, not '{}': {}", node.figure, excerpt(), example_of(node)));
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    const bool is_joined = !rest_.empty() && !is_blank(rest_.front());
    if (node.word == WordKind::kBytes) return unit(node, is_joined);
    const bool is_percent = take("%");
    if (node.word == WordKind::kRatio) {
      if (is_percent) fail(fmt::format("{} is a ratio, not a share: 1.1 for a tenth more", node.figure));
      if (is_joined && rest_.front() == 'x') rest_.remove_prefix(1);
    } else {
      if (is_percent) node.number /= 100;
      if (node.number > 1)
        fail(fmt::format("{} is a share, from 0% to 100%{}", node.figure,
                         is_percent ? "" : fmt::format(": {:g}%", node.number)));
    }
    if (is_joined && !rest_.empty() && (is_letter(rest_.front()) || is_digit(rest_.front()) || rest_.front() == '.'))
      fail(fmt::format("'{}' behind the number: {}", excerpt(), example_of(node)));
  }
  // "M", "MiB" or nothing.
  void unit(Node& node, bool is_joined) {
    constexpr std::pair<std::string_view, double> kUnits[] = {{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30},
                                                              {"K", 1 << 10},   {"M", 1 << 20},   {"G", 1 << 30}};
    const std::string_view name = next_name();
    const auto found = std::ranges::find(kUnits, name, &std::pair<std::string_view, double>::first);
    if (found != std::end(kUnits)) {
      node.number *= found->second;
      rest_.remove_prefix(name.size());
    } else if (is_joined && !rest_.starts_with(")") && !rest_.starts_with("&") && !rest_.starts_with("|")) {
      fail(fmt::format("'{}' behind the number: {}", excerpt(), example_of(node)));
    }
  }
  static std::string example_of(const Node& node) {
    if (node.word == WordKind::kBytes) return node.figure + " > 200M";
    return node.word == WordKind::kRatio ? node.figure + " > 1.1" : node.figure + " > 10%";
  }

  std::size_t cause(const CauseNames& known) {
    Node node{.kind = Kind::kCause};
    if (take("!="))
      node.negated = true;
    else if (!take("==") && !take("="))
      fail(fmt::format("cause is compared by == or !=: cause == {}", known.groups.front().first));
    const std::string name(next_name());
    node.causes = causes_named(known, name);
    if (node.causes.empty())
      fail(fmt::format("'{}' is no cause; there are {}", name.empty() ? excerpt() : printable(name), all_causes(known)));
    rest_.remove_prefix(name.size());
    return add(std::move(node));
  }

  Condition& into_;
  std::string_view option_;
  std::span<const Word> words_;
  std::string_view rest_;
};

Condition::Condition(std::string_view option, std::string text, std::span<const Word> words) : text_(std::move(text)) {
  ConditionParser(*this, option, words).parse();
}

Condition::Judgement Condition::judge(const Facts& facts) const {
  Judgement judgement;
  judgement.answer = judge(nodes_.back(), facts, judgement.because);
  judgement.is_between_limits = judgement.answer == Answer::kUndecided && is_between_limits(facts);
  return judgement;
}

bool Condition::is_between_limits(const Facts& facts) const {
  return std::ranges::any_of(nodes_, [&](const Node& node) {
    std::vector<std::string> ignored;
    return node.kind == Kind::kFigure && facts.figures.contains(node.figure) &&
           judge_figure(node, facts, ignored) == Answer::kUndecided;
  });
}

Answer Condition::judge(const Node& node, const Facts& facts, std::vector<std::string>& because) const {
  switch (node.kind) {
    case Kind::kFigure: return judge_figure(node, facts, because);
    case Kind::kFlag: return judge_flag(node, facts, because);
    case Kind::kCause: return judge_cause(node, facts, because);
    case Kind::kNot: return negation(judge(nodes_[node.left], facts, because));
    case Kind::kOr:
    case Kind::kAnd: break;
  }
  const Answer left = judge(nodes_[node.left], facts, because), right = judge(nodes_[node.right], facts, because);
  return node.kind == Kind::kAnd ? std::min(left, right) : std::max(left, right);
}

Answer Condition::judge_figure(const Node& node, const Facts& facts, std::vector<std::string>& because) {
  const auto found = facts.figures.find(node.figure);
  if (found == facts.figures.end()) {
    because.push_back(fmt::format("{} {}", printable(node.figure), facts.why_unknown));
    return Answer::kUndecided;
  }
  const Estimate& is = found->second;
  because.push_back(fmt::format("{} is {}", printable(node.figure), figure_text(is, node.word)));
  const auto holds = [&node](double value) {
    switch (node.order) {
      case Order::kGreater: return value > node.number;
      case Order::kAtLeast: return value >= node.number;
      case Order::kLess: return value < node.number;
      case Order::kAtMost: return value <= node.number;
    }
    __builtin_unreachable();
  };
  const bool low = holds(is.low), high = holds(is.high);
  return low == high ? (low ? Answer::kYes : Answer::kNo) : Answer::kUndecided;
}

Answer Condition::judge_flag(const Node& node, const Facts& facts, std::vector<std::string>& because) {
  const auto found = facts.flags.find(node.figure);
  if (found == facts.flags.end()) {
    because.push_back(fmt::format("{} {}", printable(node.figure), facts.why_unknown));
    return Answer::kUndecided;
  }
  because.push_back(fmt::format("{}: {}", printable(node.figure), found->second ? "yes" : "no"));
  return found->second ? Answer::kYes : Answer::kNo;
}

Answer Condition::judge_cause(const Node& node, const Facts& facts, std::vector<std::string>& because) {
  if (!facts.cause) {
    because.push_back(fmt::format("cause {}", facts.why_unknown));
    return Answer::kUndecided;
  }
  because.push_back(fmt::format("cause is {}", *facts.cause));
  const bool is_named = std::ranges::find(node.causes, *facts.cause) != node.causes.end();
  if (*facts.cause == "undecided" && !is_named) return Answer::kUndecided;
  return is_named != node.negated ? Answer::kYes : Answer::kNo;
}

}  // namespace freehold::cli::doctor
