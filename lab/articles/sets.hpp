// SPDX-License-Identifier: MIT
// Arithmetic on figures that were measured in every set. It works set by set, so that a disturbance of the machine falls on
// both sides of a ratio. A set in which one side is missing is left out.
#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lab/articles/findings.hpp"

namespace freehold::cli::articles {

using Sets = std::vector<std::optional<double>>;

// f of the figures of one set, for every set that all of `figures` have. Pre: not empty.
[[nodiscard]] Sets combine(const std::vector<Sets>& figures, const std::function<double(const std::vector<double>&)>& f);
[[nodiscard]] Sets quotient(const Sets& a, const Sets& b);
[[nodiscard]] Sets least_of(const std::vector<Sets>& figures);
[[nodiscard]] Sets greatest_of(const std::vector<Sets>& figures);
[[nodiscard]] Sets mean_of(const std::vector<Sets>& figures);  // geometric
[[nodiscard]] std::optional<double> median_of(const Sets& sets);
// The least and the greatest; none: no set has a figure.
[[nodiscard]] std::optional<std::pair<double, double>> range_of(const Sets& sets);
// Three digits that count; a dash for nothing.
[[nodiscard]] std::string figure_text(std::optional<double> value);
[[nodiscard]] std::string figure_text(const Sets& sets);

// Claims as they are found.
class Claims {
 public:
  // `others`: the share of the CPUs that other programs had.
  Claims(std::uint32_t article, unsigned cpus, double others, std::vector<Claim>& all)
      : article_(article), cpus_(cpus), others_(others), all_(all) {}

  struct Words {
    std::string id, statement, figure, limits;
    unsigned least_cpus = 1;   // with fewer, nothing can be said
    bool by_cpu_time = false;  // else other programs change the figures
  };
  void at_least(Words words, const Sets& ratio, double threshold) { judge(std::move(words), ratio, threshold, true); }
  void at_most(Words words, const Sets& ratio, double threshold) { judge(std::move(words), ratio, threshold, false); }
  void not_testable(std::string id, std::string statement, std::string why);
  // As another command judged it.
  void add(Claim claim);

 private:
  void judge(Words words, const Sets& ratio, double threshold, bool at_least);

  std::uint32_t article_;
  unsigned cpus_;
  double others_;
  std::vector<Claim>& all_;
};

}  // namespace freehold::cli::articles
