// SPDX-License-Identifier: MIT
// Decides for each claim of the five articles whether the figures of this machine reproduce it. A claim is a ratio and a
// threshold, or a sentence that no machine like this can test. Each set gives a ratio of its own, from figures that were
// measured side by side. Unless all sets lie on one side of the threshold, the claim is undecided; so is a claim by elapsed
// time if other programs had the CPUs.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lab/articles/experiment.hpp"

namespace freehold::cli::articles {

enum class Verdict : std::uint8_t { kReproduced, kRefuted, kUndecided, kNotTestable, kNotMeasured };
[[nodiscard]] std::string_view name_of(Verdict verdict);

struct Claim {
  std::uint32_t article = 0;
  std::string id;         // "s2-fastest-pool"
  std::string statement;  // the article's claim in our words, with its figure
  Verdict verdict = Verdict::kNotMeasured;
  std::string figure;                            // a sentence
  std::string limits;                            // why the verdict does not say more
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

// A figure against another: one value of each line for every x.
struct Plot {
  struct Line {
    std::string label;
    std::vector<std::optional<double>> values, least, greatest;  // over the sets: median and range
  };
  std::uint32_t article = 0;
  std::string title;   // "Time"
  std::string x_name;  // "pool"
  std::string y_name;  // "nanoseconds for a buffer"
  std::vector<std::uint32_t> x;
  std::vector<Line> lines;
};

struct Findings {
  std::vector<Claim> claims;
  std::vector<Table> tables;
  std::vector<Plot> plots;
  std::vector<std::string> notes;
};

[[nodiscard]] Findings findings_of(const Results& results);

}  // namespace freehold::cli::articles
