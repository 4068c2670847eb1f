// SPDX-License-Identifier: MIT
// Decides for each claim of the five articles whether the figures of this machine reproduce it. A claim is a ratio and a
// threshold, or a sentence that no machine like this can test.
#pragma once
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lab/articles/experiment.hpp"

namespace freehold::lab::articles {

struct Claim : lab::Claim {
  std::uint32_t article = 0;
  std::string limits;  // why the outcome does not say more
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
    std::vector<std::optional<double>> article = {};             // its own values, where its text gives them

    // For the next x.
    void add(const Sets& sets, std::optional<double> of_article = std::nullopt);
  };
  std::uint32_t article = 0;
  std::string title;   // "Time"
  std::string x_name;  // "pool"
  std::string y_name;  // "nanoseconds for a buffer"
  std::vector<std::uint32_t> x;
  std::vector<Line> lines;
};

// Figures beside each other.
struct Bars {
  struct Bar {
    std::string label;
    std::string kind;               // bars of a kind have a colour
    std::optional<Range> value;     // over the sets
    std::optional<double> article;  // its own value
    bool is_default = false;        // the figure is drawn with and without it
  };
  std::uint32_t article = 0;
  std::string title;
  std::string unit, unit_of_article;
  std::vector<Bar> bars;
};

struct Findings {
  std::vector<Claim> claims;
  std::vector<Table> tables;
  std::vector<Plot> plots;
  std::vector<Bars> bars;
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
[[nodiscard]] PageParts page_parts();
[[nodiscard]] nlohmann::ordered_json results_json(const Results& results);
[[nodiscard]] std::string table_of(const Results& results);

// Claims as they are found.
class Claims {
 public:
  Claims(std::uint32_t article, unsigned cpus, std::vector<Claim>& all) : article_(article), cpus_(cpus), all_(all) {}

  struct Words {
    std::string id, statement, figure, limits;
    unsigned least_cpus = 1;  // with fewer, nothing can be said
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
  std::vector<Claim>& all_;
};

}  // namespace freehold::lab::articles
