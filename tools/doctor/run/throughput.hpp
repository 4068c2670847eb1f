// SPDX-License-Identifier: MIT
// The throughput that a load reports: a number found in its output.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace freehold::doctor {

class Throughput {
 public:
  enum class Fault : std::uint8_t {
    kNone,
    kNoExpression,  // it is not a regular expression
    kNoGroup,       // nothing says where in the match the number is
  };
  // Says what is wrong with the expression: ECMAScript, with a group around the number.
  [[nodiscard]] static Fault fault_of(const std::string& expression);

  // Pre: fault_of(expression) == Fault::kNone.
  explicit Throughput(const std::string& expression);
  Throughput(const Throughput&) = delete;
  Throughput& operator=(const Throughput&) = delete;
  ~Throughput();

  // The first match whose group is a positive number; commas may separate thousands.
  [[nodiscard]] std::optional<double> find(const std::string& output) const;

 private:
  struct Expression;
  std::unique_ptr<Expression> expression_;
};

}  // namespace freehold::doctor
