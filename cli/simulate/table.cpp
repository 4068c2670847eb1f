#include "cli/simulate/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace freehold::cli::simulate {
namespace {

class Tables {
 public:
  explicit Tables(const Results& results) : results_(results) {}

  void head() {
    print(
        "Freehold on simulated cores; each figure is for one malloc and its free. Another core goes on after {} access{}.\n",
        results_.settings.quantum, results_.settings.quantum == 1 ? "" : "es, give or take");
    if (!results_.complete) print("Interrupted: what is missing was not simulated.\n");
  }

  void misses() {
    print("\nMISSES: lines that came from another core, or copies that had to go\n");
    heading();
    print("  from {} cores on\n", kFlatFrom);
    for (const Row& row : results_.rows) {
      figures(row, &sim::EngineCount::misses);
      const auto flat = is_flat(results_.settings, row);
      print("  {}\n", !flat ? "" : *flat ? "flat" : "grows");
    }
  }

  void hand_overs() {
    print("\nLOCKS that came from another core\n");
    heading();
    print("{:>10}{:>10}\n", "sleeps", "calls");
    for (const Row& row : results_.rows) {
      figures(row, &sim::EngineCount::hand_overs);
      if (row.counts.empty()) {
        print("\n");
        continue;
      }
      const sim::EngineCount& last = row.counts.back();
      print("{:>10.3f}{:>10.3f}\n", last.per_pair(last.waits), last.per_pair(last.calls));
    }
    print("sleeps for a lock, and calls to the system: on the greatest number of cores\n");
  }

  void places() {
    if (results_.settings.places == 0) return;
    for (const Row& row : results_.rows) {
      if (row.counts.size() != results_.settings.cores.size() || row.counts.back().places.empty()) continue;
      print("\nPLACES of the misses: {}, {} bytes, {} cores\n{:>9}  {:<26}{:<24}{:>8}\n", name_of(row.workload), row.bytes,
            results_.settings.cores.back(), "misses", "source", "object", "lines");
      const auto& all = row.counts.back().places;
      for (std::size_t i = 0; i < std::min<std::size_t>(all.size(), results_.settings.places); ++i)
        print("{:>9.3f}  {:<26}{:<24}{:>8}\n", all[i].misses_per_pair, all[i].source, all[i].object, all[i].lines);
    }
  }

  std::string text() && { return std::move(out_); }

 private:
  template <class... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }
  void heading() {
    print("{:<10}{:>8}", "workload", "bytes");
    for (const std::uint32_t cores : results_.settings.cores) print("{:>8}", cores);
  }
  void figures(const Row& row, std::uint64_t sim::EngineCount::* what) {
    print("{:<10}{:>8}", name_of(row.workload), row.bytes);
    for (const sim::EngineCount& count : row.counts) print("{:>8.3f}", count.per_pair(count.*what));
    for (std::size_t i = row.counts.size(); i < results_.settings.cores.size(); ++i) print("{:>8}", "-");
  }

  const Results& results_;
  std::string out_;
};

}  // namespace

std::string table_of(const Results& results) {
  Tables tables(results);
  tables.head();
  tables.misses();
  tables.hand_overs();
  tables.places();
  return std::move(tables).text();
}

}  // namespace freehold::cli::simulate
