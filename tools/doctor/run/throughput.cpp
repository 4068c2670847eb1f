// SPDX-License-Identifier: MIT
#include "tools/doctor/run/throughput.hpp"

#include <algorithm>
#include <charconv>
#include <regex>
#include <sstream>

namespace freehold::doctor {

struct Throughput::Expression {
  std::regex regex;
};

Throughput::Fault Throughput::fault_of(const std::string& expression) {
  try {
    return std::regex(expression, std::regex::ECMAScript).mark_count() == 0 ? Fault::kNoGroup : Fault::kNone;
  } catch (const std::regex_error&) {
    return Fault::kNoExpression;
  }
}

Throughput::Throughput(const std::string& expression)
    : expression_(std::make_unique<Expression>(Expression{std::regex(expression, std::regex::ECMAScript)})) {}

Throughput::~Throughput() = default;

std::optional<double> Throughput::find(const std::string& output) const {
  // Line by line: the library's matcher recurses over what it looks through.
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    constexpr std::size_t kLongestLine = 4096;
    line.resize(std::min(line.size(), kLongestLine));
    std::smatch match;
    if (!std::regex_search(line, match, expression_->regex)) continue;
    std::string number = match[1];
    std::erase(number, ',');
    double value = 0;
    const auto parsed = std::from_chars(number.data(), number.data() + number.size(), value);
    if (parsed.ec == std::errc() && value > 0) return value;
  }
  return std::nullopt;
}

}  // namespace freehold::doctor
