// What the figures say about each claim of the five articles, on this machine. A claim is a ratio and a threshold, or a
// sentence that no machine like this can test. The ratio is formed in every set on its own, of figures that were measured
// side by side; two thirds of the sets must lie on one side of the threshold, else they contradict each other.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/articles/experiment.hpp"

namespace freehold::cli::articles {

enum class Verdict : std::uint8_t { kReproduced, kRefuted, kUndecided, kNotTestable, kNotMeasured };
[[nodiscard]] std::string_view name_of(Verdict verdict);

struct Claim {
  std::uint32_t article = 0;
  std::string id;         // "s2-fastest-pool"
  std::string statement;  // what the article says, in our words, and its figure
  Verdict verdict = Verdict::kNotMeasured;
  std::string figure;                            // a sentence
  std::string limits;                            // what keeps the verdict from saying more
  std::optional<double> ratio, least, greatest;  // over the sets: median and range
  double threshold = 0;
  bool at_least = true;  // reproduced if the ratio is at least the threshold; else if at most
};

// A table of figures behind the claims, ready to be shown.
struct Table {
  std::uint32_t article = 0;
  std::string title;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};

struct Findings {
  std::vector<Claim> claims;
  std::vector<Table> tables;
  std::vector<std::string> notes;
};

[[nodiscard]] Findings findings_of(const Results& results);

}  // namespace freehold::cli::articles
