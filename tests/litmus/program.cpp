// SPDX-License-Identifier: MIT
#include "tests/litmus/program.hpp"

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace freehold::litmus {
namespace {

using Order = std::memory_order;

constexpr std::pair<std::string_view, Order> kOrders[] = {{"rlx", Order::relaxed},
                                                          {"acq", Order::acquire},
                                                          {"rel", Order::release},
                                                          {"ar", Order::acq_rel},
                                                          {"sc", Order::seq_cst}};

constexpr std::pair<char, Kind> kSigns[] = {
    {'=', Kind::kStore}, {'<', Kind::kExchange}, {'+', Kind::kAdd}, {'?', Kind::kCas}, {'~', Kind::kWeakCas}};

char digit(unsigned value) noexcept { return static_cast<char>(value < 10 ? '0' + value : 'a' + value - 10); }

// One instruction of the text, from left to right.
class Reader {
 public:
  explicit Reader(std::string_view word) : word_(word), rest_(word) {}

  Instruction instruction() {
    Instruction result;
    const char first = next();
    if (first != 'F') {
      if (first < 'x' || first > 'z') fail();
      result.location = static_cast<std::uint8_t>(first - 'x');
      result.kind = Kind::kLoad;
      if (!rest_.empty() && rest_.front() != '/') modification(result);
    }
    result.order = order();
    if (result.compares()) result.failure = order();
    if (!rest_.empty()) fail();
    return result;
  }

 private:
  void modification(Instruction& result) {
    const char sign = next();
    const auto* const known =
        std::find_if(std::begin(kSigns), std::end(kSigns), [&](const auto& s) { return s.first == sign; });
    if (known == std::end(kSigns)) fail();
    result.kind = known->second;
    if (result.compares()) {
      result.expected = number();
      if (next() != ':') fail();
    }
    result.operand = number();
  }
  Order order() {
    if (next() != '/') fail();
    const std::string_view name = rest_.substr(0, rest_.find('/'));
    rest_.remove_prefix(name.size());
    for (const auto& [known, order] : kOrders)
      if (known == name) return order;
    fail();
  }
  std::uint8_t number() {
    const char c = next();
    if (c < '0' || c > '9') fail();
    return static_cast<std::uint8_t>(c - '0');
  }
  char next() {
    if (rest_.empty()) fail();
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }
  [[noreturn]] void fail() const { throw std::invalid_argument("no instruction: " + std::string(word_)); }

  std::string_view word_, rest_;
};

std::string text(Order order) {
  for (const auto& [name, known] : kOrders)
    if (known == order) return "/" + std::string(name);
  return "/?";
}

std::string text(const Instruction& i) {
  if (i.kind == Kind::kFence) return "F" + text(i.order);
  std::string result(1, static_cast<char>('x' + i.location));
  for (const auto& [sign, kind] : kSigns)
    if (kind == i.kind) result += sign;
  if (i.compares()) result += std::string(1, digit(i.expected)) + ":";
  if (i.may_write()) result += digit(i.operand);
  result += text(i.order);
  return i.compares() ? result + text(i.failure) : result;
}

}  // namespace

unsigned Program::locations() const noexcept {
  unsigned count = 0;
  for (const Thread& thread : threads)
    for (const Instruction& i : thread)
      if (i.kind != Kind::kFence) count = std::max(count, i.location + 1u);
  return count;
}

unsigned Program::instructions() const noexcept {
  std::size_t count = 0;
  for (const Thread& thread : threads) count += thread.size();
  return static_cast<unsigned>(count);
}

Program parse(std::string_view text) {
  Program program{{Thread{}}};
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    if (word == "|") {
      program.threads.emplace_back();
    } else {
      program.threads.back().push_back(Reader(word).instruction());
    }
  }
  if (program.instructions() > kMaxInstructions) throw std::invalid_argument("too long: " + std::string(text));
  return program;
}

std::string text(const Program& program) {
  std::string result;
  for (const Thread& thread : program.threads) {
    if (&thread != &program.threads.front()) result += "| ";
    for (const Instruction& instruction : thread) result += text(instruction) + " ";
  }
  if (!result.empty()) result.pop_back();
  return result;
}

std::string outcome(const Program& program, const Observed& observed) {
  std::string result;
  unsigned at = 0;
  for (const Thread& thread : program.threads) {
    for (const Instruction& i : thread) {
      if (i.reads()) result += digit(observed.read[at]);
      if (i.kind == Kind::kWeakCas && observed.read[at] == i.expected && !observed.swapped[at]) result += '!';
      ++at;
    }
  }
  result += ';';
  for (unsigned location = 0; location < program.locations(); ++location) result += digit(observed.last[location]);
  return result;
}

bool fits(std::string_view outcome, std::string_view pattern) noexcept {
  return outcome.size() == pattern.size() &&
         std::equal(outcome.begin(), outcome.end(), pattern.begin(), [](char a, char b) { return a == b || b == '.'; });
}

}  // namespace freehold::litmus
