// SPDX-License-Identifier: MIT
// Runs the plan, one command's experiment after the other. Keeps the finished measurements when interrupted.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lab/experiment/series.hpp"
#include "lab/pools/experiment.hpp"
#include "lab/scale/experiment.hpp"
#include "lab/timers/experiment.hpp"
#include "tools/support/interrupts.hpp"

namespace freehold::lab::articles {

// The measurements for the articles' claims: experiments of the other commands, each limited to the rows that a claim needs.
// There is no measuring code here.
inline constexpr std::uint32_t kFirstArticle = 1, kLastArticle = 5;

struct Choice {
  std::vector<std::uint32_t> articles{1, 2, 3, 4, 5};
  std::uint32_t repeat = 5;  // 0: as often as each article did
  bool quick = false;        // a tenth of the work, one set unless `repeat` is given
  bool full = false;         // the articles' own counts
  std::string store = {};    // the file that keeps finished measurements; empty: none
  std::string library = {};  // Freehold's malloc, which articles 3 to 5 need
};

// The parts that no chosen article needs are empty. A plan is results without measurements.
struct Results : RunRecord {
  Choice choice;
  std::optional<pools::Results> crc;      // article 1
  std::optional<pools::Results> padding;  // its own array with and without padding
  std::optional<pools::Results> crc_on_one_cpu;
  std::optional<pools::Results> handed;   // slots that another thread releases: articles 1 and 2
  std::optional<pools::Results> several;  // article 2's tests 1 and 2
  std::optional<pools::Results> locks;    // its S3 with three locks
  std::optional<pools::Results> fewer;    // its test 2 with a quarter of the operations
  std::optional<pools::Results> alone;    // its test 3, and other tests with one thread
  std::optional<timers::Results> timers;  // article 3
  std::optional<scale::Results> scaling;  // article 4
  std::optional<scale::Results> one_cpu;  // its tests on a single processor
  std::optional<scale::Results> pooled;   // short documents, by processes, by the pool, by a process for each
  std::optional<scale::Results> blocks;   // article 5
  std::optional<scale::Results> blocks_one_cpu;

  [[nodiscard]] bool has_failures() const;
};

// f(part), an optional, for each part that there is, in the order in which they are measured.
template <class AnyResults>
void for_each_part(AnyResults& results, auto f) {
  const auto each = [&](auto&... parts) { ((parts ? f(parts) : void()), ...); };
  each(results.crc, results.padding, results.crc_on_one_cpu, results.handed, results.several, results.locks, results.fewer,
       results.alone, results.timers, results.scaling, results.one_cpu, results.pooled, results.blocks,
       results.blocks_one_cpu);
}
inline void drop_disturbed(Results& results) {
  for_each_part(results, [](auto& part) { lab::drop_disturbed(*part); });
}

[[nodiscard]] Results plan_of(const Choice& choice);

// Without the parts that were not begun before an interrupt.
[[nodiscard]] Results run_experiment(const Results& plan, Interrupts& interrupts, Progress& progress);
// Seconds that the plan takes on a quiet machine, roughly; and its measurements.
struct Extent {
  double seconds = 0;
  std::size_t measurements = 0;
};
[[nodiscard]] Extent extent_of(const Results& plan);
// An article's measurements, with its counts.
[[nodiscard]] std::string counts_of(const Results& results, std::uint32_t article);
// The failed measurements, a sentence each.
[[nodiscard]] std::vector<std::string> failures_of(const Results& results);
// The subcommand: its options, and its action after the parsing, which returns the exit code.
void add_options(Command& command);
[[nodiscard]] int run_command();

}  // namespace freehold::lab::articles
