// What a load says it achieved: a number found in its output.
#pragma once
#include <memory>
#include <optional>
#include <string>

namespace freehold::cli::doctor {

class Throughput {
 public:
  // `expression`: ECMAScript, with a group around the number. Throws Failure if it is none.
  explicit Throughput(const std::string& expression);
  Throughput(const Throughput&) = delete;
  Throughput& operator=(const Throughput&) = delete;
  ~Throughput();

  // The first match whose group is a positive number; thousands may be apart by commas.
  [[nodiscard]] std::optional<double> find(const std::string& output) const;

 private:
  struct Expression;
  std::unique_ptr<Expression> expression_;
};

}  // namespace freehold::cli::doctor
