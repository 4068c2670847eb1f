// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "lab/pools/experiment.hpp"
#include "tools/output/text.hpp"

namespace freehold::lab::pools {
namespace {

constexpr std::size_t kColumns = 8;  // figures beside each other
constexpr double kTie = 1.05;

std::string_view heading(Trial test) {
  constexpr Names<Trial, kTests.size()> kHeadings{
      {"short life", "long life", "one thread", "random order", "ring", "bare pair", "alike lives", "mixed lives", "crc"}};
  return kHeadings[test];
}

std::string_view subheading(const Row& row) {
  if (row.test == Trial::kRing) return "handed on";
  if (row.threads == 1 && !has_contexts(row.test)) return "1 thread";
  return name_of(row.context);
}

class Tables {
 public:
  explicit Tables(const Results& results) : results_(results) {
    for (const Candidate* pool : results.settings.pools) width_ = std::max(width_, pool->name.size());
  }

  void head() {
    const Settings& s = results_.settings;
    out_.print("{}", machine_line(results_.machine));
    if (results_.series.empty()) return;
    out_.print("{} threads{}, {} operations each{}, slots of {} bytes; medians of {} set{}\n", s.threads,
               s.one_cpu ? " on one CPU" : "", s.operations,
               s.whole ? "" : fmt::format(" but no longer than {} ms", s.milliseconds), s.slot_bytes, s.repeat,
               s.repeat == 1 ? "" : "s");
  }

  void compared() {
    const std::vector<Comparison> all = comparisons(results_);
    if (all.empty()) return;
    out_.print("\n{:<20}{:>11}{:>9}  {:<{}} {:>8}{:>14}\n", "", "BestPool", "best of", "the others", width_, "ratio",
               "in the sets");
    if (std::ranges::any_of(all, [&](const Comparison& c) { return ours_in(results_, c.row)->name == kOursAlone; }))
      out_.print("  (one thread: SingleThreadPool)\n");
    for (const Comparison& c : all) {
      out_.print("{} {:<18}{:>11}{:>9}  {:<{}} {:>8.2f}{:>14}\n", c.ratio() > kTie ? '-' : ' ', text_of(c.row),
                 three_digits(c.ours), three_digits(c.other), c.name, width_, c.ratio(),
                 fmt::format("{:.2f}-{:.2f}", c.least, c.greatest));
    }
  }

  void figures() {
    std::vector<Row> rows = rows_of(results_.settings);
    std::erase_if(rows, [](const Row& row) { return row.test == Trial::kCrc; });
    if (rows.empty()) return;
    out_.print("\nNANOSECONDS per acquire and release, over all threads; * the best of the row\n");
    for (std::size_t first = 0; first < rows.size(); first += kColumns)
      block(std::span(rows).subspan(first, std::min(kColumns, rows.size() - first)));
  }

  // Article 1.
  void crc() {
    std::vector<Row> rows = rows_of(results_.settings);
    std::erase_if(rows, [](const Row& row) { return row.test != Trial::kCrc; });
    if (rows.empty()) return;
    out_.print(
        "\nCRC: microseconds per buffer and contention, {} bytes, half of the threads write, half read, {} for a "
        "write\n{:<{}}",
        results_.settings.crc_bytes, results_.settings.crc_reads, "threads", width_ + 5);
    for (const Row& row : rows) out_.print("{:>9}{:>7}", row.threads, "");
    out_.print("\n");
    for (const Candidate* const pool : results_.settings.pools) {
      for (const std::uint32_t shards : shards_of(results_.settings, rows.front(), *pool)) {
        out_.print("{:<{}}{}", pool->name, width_, shards == 0 ? "     " : fmt::format(" ×{:<3}", shards));
        for (const Row& row : rows) crc_figure(row, pool->name, shards);
        out_.print("\n");
      }
    }
  }

  void memory() {
    const auto all = footprints(results_);
    if (std::ranges::none_of(all, [](const Footprint& one) { return one.alike || one.mixed; })) return;
    out_.print(
        "\nMEMORY: bytes of bookkeeping for a slot of {} bytes, at most; pages that live slots lie in for each\n"
        "that they would fill, after the oldest and after any were replaced\n{:<{}}{:>9}{:>9}{:>9}\n",
        results_.settings.slot_bytes, "", width_, "bytes", "alike", "mixed");
    for (const Footprint& one : all)
      out_.print("{:<{}}{:>9}{:>9}{:>9}\n", one.pool, width_, figure_text(one.bookkeeping_bytes, "-"),
                 figure_text(one.alike, "-"), figure_text(one.mixed, "-"));
  }

  void simulated() {
    if (results_.simulated.empty()) return;
    constexpr std::array kShown{std::size_t{1}, std::size_t{4}, kSimulatedCores.size() - 1};  // 2, 16 and 256 cores
    for (const std::string_view workload : kSimulatedWorkloads) {
      out_.print("\nMISSES per acquire and release on simulated cores, {}\n{:<{}}", text_of_workload(workload),
                 "accesses in a turn", width_);
      for (const unsigned quantum : quanta_of(workload)) out_.print("{:>10}{:16}", quantum, "");
      out_.print("\n{:<{}}", "cores", width_);
      for (std::size_t i = 0; i < quanta_of(workload).size(); ++i) {
        for (const std::size_t at : kShown) out_.print("{:>{}}", kSimulatedCores[at], at == kShown[0] ? 10 : 8);
      }
      out_.print("\n");
      for (const Candidate* pool : results_.settings.pools) simulated_row(*pool, workload, kShown);
    }
  }

  void notes() {
    const std::string notes = list_of(notes_of(results_), kWidth);
    if (!notes.empty()) out_.print("\n{}", notes);
  }

  std::string text() && { return std::move(out_).take(); }

 private:
  void block(std::span<const Row> rows) {
    out_.print("\n{:<{}}", "", width_);
    for (std::size_t i = 0; i < rows.size(); ++i)
      out_.print(" {:>11}",
                 i == 0 || rows[i].test != rows[i - 1].test || !has_contexts(rows[i].test) ? heading(rows[i].test) : "");
    out_.print("\n{:<{}}", "", width_);
    for (const Row& row : rows) out_.print(" {:>11}", subheading(row));
    out_.print("\n");
    for (const Candidate* const pool : results_.settings.pools) {
      out_.print("{:<{}}", pool->name, width_);
      for (const Row& row : rows) out_.print(" {:>11}", figure(row, pool->name));
      out_.print("\n");
    }
  }

  static std::string_view text_of_workload(std::string_view workload) {
    if (workload == "own") return "each releases its own slots";
    if (workload == "exchange") return "the next core releases them";
    if (workload == "one-way") return "every second core acquires, the next one releases";
    return "each acquires 256, then releases them";
  }
  void simulated_row(const Candidate& pool, std::string_view workload, std::span<const std::size_t> shown) {
    std::string figures;
    for (const Simulated& one : results_.simulated) {
      if (one.pool != pool.name || one.workload != workload) continue;
      for (const std::size_t at : shown) figures += fmt::format("{:>{}.2f}", one.misses[at], at == shown[0] ? 10 : 8);
    }
    if (!figures.empty()) out_.print("{:<{}}{}\n", pool.name, width_, figures);
  }

  void crc_figure(const Row& row, std::string_view pool, std::uint32_t shards) {
    const Series* const series = results_.find(row, pool, shards);
    const auto time = cost(series);
    const auto share = contention(results_.find(row, pool, shards, true));
    out_.print("{:>9}{:>7}", time ? fmt::format("{}{:.3f}", is_shortened(*series) ? "~" : "", 1e-3 * *time) : "-",
               share ? fmt::format("{:.1f}%", 100 * *share) : "");
  }

  std::string figure(const Row& row, std::string_view pool) {
    const Series* const series = results_.find(row, pool);
    const auto value = cost(series);
    if (!value) return "-";
    return fmt::format("{}{}{}", is_shortened(*series) ? "~" : "", three_digits(*value),
                       series == best_of(results_, row) ? "*" : " ");
  }

  const Results& results_;
  std::size_t width_ = 8;
  TextWriter out_;
};

}  // namespace

std::string table_of(const Results& results) {
  Tables tables(results);
  tables.head();
  tables.compared();
  tables.figures();
  tables.crc();
  tables.memory();
  tables.simulated();
  tables.notes();
  return std::move(tables).text();
}

}  // namespace freehold::lab::pools
