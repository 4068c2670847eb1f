// SPDX-License-Identifier: MIT
#include <algorithm>

#include "lab/simulate/simulation.hpp"
#include "tools/output/text.hpp"

namespace freehold::lab::simulate {
namespace {

class Tables {
 public:
  explicit Tables(const Results& results) : results_(results) {}

  void head() {
    out_.print(
        "Freehold on simulated cores; each figure is for one malloc and its free. Another core goes on after {} access{}.\n",
        results_.settings.quantum, results_.settings.quantum == 1 ? "" : "es, give or take");
    if (!results_.complete) out_.print("Interrupted: only the counts finished until then are shown.\n");
  }

  void misses() {
    out_.print("\nMISSES: lines that came from another core, or copies that had to go\n");
    heading();
    out_.print("  from {} cores on\n", kFlatFrom);
    for (const Row& row : results_.rows) {
      figures(row, &sim::EngineCount::misses);
      const auto flat = is_flat(results_.settings, row);
      out_.print("  {}\n", !flat ? "" : *flat ? "flat" : "grows");
    }
  }

  void hand_overs() {
    out_.print("\nLOCKS that came from another core\n");
    heading();
    out_.print("{:>10}{:>10}\n", "sleeps", "calls");
    for (const Row& row : results_.rows) {
      figures(row, &sim::EngineCount::hand_overs);
      if (row.counts.empty()) {
        out_.print("\n");
        continue;
      }
      const sim::EngineCount& last = row.counts.back();
      out_.print("{:>10.3f}{:>10.3f}\n", last.per_pair(last.waits), last.per_pair(last.calls));
    }
    out_.print("sleeps for a lock, and calls to the system: on the greatest number of cores\n");
  }

  void nodes() {
    const Settings& settings = results_.settings;
    if (settings.nodes == 1) return;
    out_.print("\nFAR: of the lines that came, the part that another of {} memory nodes served, in percent\n",
               settings.nodes);
    heading();
    out_.print("{:>10}\n", "cost");
    for (const Row& row : results_.rows) {
      figures(row, [](const sim::EngineCount& count) { return 100 * far_share(count); });
      if (!row.counts.empty()) out_.print("{:>10.3f}", line_cost(settings, row.counts.back()));
      out_.print("\n");
    }
    out_.print("cost: of all lines, if one at home costs 1 and another {}: on the greatest number of cores\n",
               settings.far_cost / 100.0);
  }

  void places() {
    if (results_.settings.places == 0) return;
    for (const Row& row : results_.rows) {
      if (row.counts.size() != results_.settings.cores.size() || row.counts.back().places.empty()) continue;
      out_.print("\nPLACES of the misses: {}, {} bytes, {} cores\n{:>9}  {:<26}{:<24}{:>8}\n", name_of(row.workload),
                 row.bytes, results_.settings.cores.back(), "misses", "source", "object", "lines");
      const auto& all = row.counts.back().places;
      for (std::size_t i = 0; i < std::min<std::size_t>(all.size(), results_.settings.places); ++i)
        out_.print("{:>9.3f}  {:<26}{:<24}{:>8}\n", all[i].misses_per_pair, all[i].source, all[i].object, all[i].lines);
    }
  }

  std::string text() && { return std::move(out_).take(); }

 private:
  void heading() {
    out_.print("{:<10}{:>8}", "workload", "bytes");
    for (const std::uint32_t cores : results_.settings.cores) out_.print("{:>8}", cores);
  }
  void figures(const Row& row, std::uint64_t sim::EngineCount::* what) {
    figures(row, [what](const sim::EngineCount& count) { return count.per_pair(count.*what); });
  }
  template <class F>
  void figures(const Row& row, F&& figure) {
    out_.print("{:<10}{:>8}", name_of(row.workload), row.bytes);
    for (const sim::EngineCount& count : row.counts) out_.print("{:>8.3f}", figure(count));
    for (std::size_t i = row.counts.size(); i < results_.settings.cores.size(); ++i) out_.print("{:>8}", "-");
  }

  const Results& results_;
  TextWriter out_;
};

}  // namespace

std::string table_of(const Results& results) {
  Tables tables(results);
  tables.head();
  tables.misses();
  tables.hand_overs();
  tables.nodes();
  tables.places();
  return std::move(tables).text();
}

}  // namespace freehold::lab::simulate
