#include "cli/pools/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

#include "cli/report/text.hpp"
#include "cli/support/failure.hpp"

namespace freehold::cli::pools {
namespace {

constexpr std::size_t kWidth = 100;
constexpr std::size_t kColumns = 8;  // of figures beside each other
constexpr double kTie = 1.05;

// Three digits that count.
std::string number(double value) { return fmt::format("{:.{}f}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0); }

std::string_view heading(Trial test) {
  switch (test) {
    case Trial::kShort: return "short life";
    case Trial::kLong: return "long life";
    case Trial::kSingle: return "one thread";
    case Trial::kRandom: return "random order";
    case Trial::kRing: return "ring";
    case Trial::kPair: return "bare pair";
    case Trial::kCrc: return "crc";
  }
  __builtin_unreachable();
}

std::string_view subheading(const Row& row) {
  if (row.test == Trial::kRing) return "handed on";
  if (row.test == Trial::kPair) return "1 thread";
  return name_of(row.context);
}

class Tables {
 public:
  explicit Tables(const Results& results) : results_(results) {
    for (const Contender* pool : results.settings.pools) width_ = std::max(width_, pool->name.size());
  }

  void head() {
    const Settings& s = results_.settings;
    print("{}", machine_line(results_.machine));
    if (results_.series.empty()) return;
    print("{} threads, {} operations each, slots of {} bytes; medians of {} set{}\n", s.threads, s.operations, s.slot_bytes,
          s.repeat, s.repeat == 1 ? "" : "s");
  }

  void compared() {
    const std::vector<Comparison> all = comparisons(results_);
    if (all.empty()) return;
    print("\n{:<20}{:>11}{:>9}  {:<{}} {:>8}{:>14}\n", "", "BestPool", "best of", "the others", width_, "ratio",
          "in the sets");
    if (std::ranges::any_of(all, [&](const Comparison& c) { return ours_in(results_, c.row)->name == kOursAlone; }))
      print("  (one thread: SingleThread)\n");
    for (const Comparison& c : all) {
      print("{} {:<18}{:>11}{:>9}  {:<{}} {:>8.2f}{:>14}\n", c.ratio() > kTie ? '-' : ' ', text_of(c.row), number(c.ours),
            number(c.other), c.name, width_, c.ratio(), fmt::format("{:.2f}-{:.2f}", c.least, c.greatest));
    }
  }

  void figures() {
    std::vector<Row> rows = rows_of(results_.settings);
    std::erase_if(rows, [](const Row& row) { return row.test == Trial::kCrc; });
    if (rows.empty()) return;
    print("\nNANOSECONDS per acquire and release, over all threads; * the best of the row\n");
    for (std::size_t first = 0; first < rows.size(); first += kColumns)
      block(std::span(rows).subspan(first, std::min(kColumns, rows.size() - first)));
  }

  // Article 1.
  void crc() {
    std::vector<Row> rows = rows_of(results_.settings);
    std::erase_if(rows, [](const Row& row) { return row.test != Trial::kCrc; });
    if (rows.empty()) return;
    print(
        "\nCRC: microseconds per buffer and contention, {} bytes, half of the threads write, half read, {} for a "
        "write\n{:<{}}",
        results_.settings.crc_bytes, results_.settings.crc_reads, "threads", width_ + 5);
    for (const Row& row : rows) print("{:>9}{:>7}", row.threads, "");
    print("\n");
    for (std::size_t pool = 0; pool < results_.settings.pools.size(); ++pool) {
      const Contender& contender = *results_.settings.pools[pool];
      for (const std::uint32_t shards : shards_of(results_.settings, rows.front(), contender)) {
        print("{:<{}}{}", contender.name, width_, shards == 0 ? "     " : fmt::format(" ×{:<3}", shards));
        for (const Row& row : rows) crc_figure(row, pool, shards);
        print("\n");
      }
    }
  }

  void simulated() {
    if (results_.simulated.empty()) return;
    constexpr std::array kShown{std::size_t{1}, std::size_t{4}, kSimulatedCores.size() - 1};  // 2, 16 and 256 cores
    for (const std::string_view workload : kSimulatedWorkloads) {
      print("\nMISSES per acquire and release on simulated cores, {}\n{:<{}}", text_of_workload(workload),
            "accesses in a turn", width_);
      for (const unsigned quantum : quanta_of(workload)) print("{:>10}{:16}", quantum, "");
      print("\n{:<{}}", "cores", width_);
      for (std::size_t i = 0; i < quanta_of(workload).size(); ++i) {
        for (const std::size_t at : kShown) print("{:>{}}", kSimulatedCores[at], at == kShown[0] ? 10 : 8);
      }
      print("\n");
      for (const Contender* pool : results_.settings.pools) simulated_row(*pool, workload, kShown);
    }
  }

  void notes() {
    const std::string notes = list_of(notes_of(results_), kWidth);
    if (!notes.empty()) print("\n{}", notes);
  }

  std::string text() && { return std::move(out_); }

 private:
  template <class... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  void block(std::span<const Row> rows) {
    print("\n{:<{}}", "", width_);
    for (std::size_t i = 0; i < rows.size(); ++i)
      print(" {:>11}",
            i == 0 || rows[i].test != rows[i - 1].test || !has_contexts(rows[i].test) ? heading(rows[i].test) : "");
    print("\n{:<{}}", "", width_);
    for (const Row& row : rows) print(" {:>11}", subheading(row));
    print("\n");
    for (std::size_t pool = 0; pool < results_.settings.pools.size(); ++pool) {
      print("{:<{}}", results_.settings.pools[pool]->name, width_);
      for (const Row& row : rows) print(" {:>11}", figure(row, pool));
      print("\n");
    }
  }

  static std::string_view text_of_workload(std::string_view workload) {
    if (workload == "own") return "each releases its own slots";
    if (workload == "exchange") return "the next core releases them";
    if (workload == "one-way") return "every second core acquires, the next one releases";
    return "each acquires 256, then releases them";
  }
  void simulated_row(const Contender& pool, std::string_view workload, std::span<const std::size_t> shown) {
    std::string figures;
    for (const Simulated& one : results_.simulated) {
      if (one.pool != pool.name || one.workload != workload) continue;
      for (const std::size_t at : shown) figures += fmt::format("{:>{}.2f}", one.misses[at], at == shown[0] ? 10 : 8);
    }
    if (!figures.empty()) print("{:<{}}{}\n", pool.name, width_, figures);
  }

  void crc_figure(const Row& row, std::size_t pool, std::uint32_t shards) {
    const auto time = cost(results_.find(row, pool, shards));
    const auto share = contention(results_.find(row, pool, shards, true));
    print("{:>9}{:>7}", time ? fmt::format("{:.3f}", 1e-3 * *time) : "-", share ? fmt::format("{:.1f}%", 100 * *share) : "");
  }

  std::string figure(const Row& row, std::size_t pool) {
    const Series* const series = results_.find(row, pool);
    const auto value = cost(series);
    if (!value) return "-";
    return fmt::format("{}{}{}", is_shortened(results_, *series) ? "~" : "", number(*value),
                       series == best_of(results_, row) ? "*" : " ");
  }

  const Results& results_;
  std::size_t width_ = 8;
  std::string out_;
};

}  // namespace

std::string table_of(const Results& results) {
  Tables tables(results);
  tables.head();
  tables.compared();
  tables.figures();
  tables.crc();
  tables.simulated();
  tables.notes();
  return std::move(tables).text();
}

std::string list_of_contenders() {
  std::string out;
  for (const Contender& contender : contenders()) out += fmt::format("{:<22} {}\n", contender.name, contender.source);
  return out;
}

}  // namespace freehold::cli::pools
