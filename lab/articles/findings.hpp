// SPDX-License-Identifier: MIT
// Decides for each claim of the five articles whether the figures of this machine reproduce it. A claim is a ratio and a
// threshold, or a sentence that no machine like this can test. Each set gives a ratio of its own, from figures that were
// measured side by side. Unless all sets lie on one side of the threshold, the claim is undecided; so is a claim by elapsed
// time if other programs had the CPUs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lab/articles/experiment.hpp"
#include "lab/experiment/command.hpp"

namespace freehold::cli::articles {

enum class Verdict : std::uint8_t { kReproduced, kRefuted, kUndecided, kNotTestable, kNotMeasured };
inline constexpr Names<Verdict, 5> kVerdicts{{"reproduced", "refuted", "undecided", "not testable", "not measured"}};
[[nodiscard]] constexpr const auto& names_of(Verdict) { return kVerdicts; }
using cli::name_of;

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
// Its parts: articles 1 and 2; 3; 4 and 5. Pre: the parts of the results that they need are there.
void find_distributed_pools(const Results& results, Findings& findings);
void find_pools_compared(const Results& results, Findings& findings);
void find_timers(const Results& results, Findings& findings);
void find_scaling(const Results& results, Findings& findings);
void find_thread_local(const Results& results, Findings& findings);

// As JSON, of which docs/articles.md names the fields; as the page that is made of the same object; and for terminals.
[[nodiscard]] nlohmann::ordered_json results_json(const Results& results, const Findings& findings);
[[nodiscard]] std::string page_of(const nlohmann::ordered_json& results);
[[nodiscard]] std::string table_of(const Results& results, const Findings& findings);
// Writes JSON and page into `files`, and the table to standard output. Returns whether every measurement succeeded.
[[nodiscard]] bool write_results(const ResultFiles& files, const Results& results);

// Arithmetic on figures that were measured in every set. It works set by set, so that a disturbance of the machine falls on
// both sides of a ratio. A set in which one side is missing is left out.
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
