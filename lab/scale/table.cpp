// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>

#include "lab/scale/experiment.hpp"
#include "tools/output/text.hpp"
#include "tools/support/failure.hpp"
#include "tools/support/units.hpp"

namespace freehold::lab::scale {
namespace {

using Values = std::vector<std::optional<double>>;

std::string cell_text(const std::optional<double>& value, int decimals) {
  return value ? fmt::format("{:>7.{}f}", *value, decimals) : fmt::format("{:>7}", "-");
}

std::size_t name_width(const Results& results) {
  std::size_t width = 8;
  for (const Subject& subject : results.settings.subjects) width = std::max(width, subject.name.size());
  return std::min<std::size_t>(width, 20);
}

std::string_view heading(Mode mode) {
  constexpr Names<Mode, kModes.size()> kHeadings{{"THREADS", "PROCESSES",
                                                  "THREADS THAT CALL A POOL OF AS MANY WORKER PROCESSES",
                                                  "THREADS THAT START A PROCESS FOR EACH ITERATION"}};
  return kHeadings[mode];
}

std::string clipped(const std::string& name, std::size_t width) { return printable(name).substr(0, width); }

class Tables {
 public:
  explicit Tables(const Results& results) : results_(results), width_(name_width(results)) {}

  void head() {
    const Settings& s = results_.settings;
    out_.print("{}", machine_line(results_.machine));
    out_.print("{} iterations shared by the workers, about {} ms of work; medians of {} set{}\n", s.iterations,
               s.milliseconds, s.repeat, s.repeat == 1 ? "" : "s");
  }

  // One diagram of the scaling article as a table.
  void workloads(Mode mode) {
    if (!has(mode)) return;
    out_.print("\n{}: how many times as fast as one\n", heading(mode));
    out_.print("{:10} {:{}}", "", "", width_);
    for (const std::uint32_t workers : results_.settings.workers) out_.print("{:>7}", workers);
    out_.print("  {:{}}{:>11} {:>11}\n", "", results_.settings.workers.size(), "time of one", "peak memory");
    ideal();
    for (const Workload test : results_.settings.tests) {
      if (runs_as_processes(test)) workload(test, mode);
    }
  }

  // The thread-local article's tests side by side.
  void block_tests() {
    std::vector<Workload> tests = results_.settings.tests;
    std::erase_if(tests, [&](Workload test) { return runs_as_processes(test) || !measured(test, Mode::kThreads); });
    if (tests.empty()) return;
    out_.print("\nBLOCKS: nanoseconds per block over all threads\n{:{}}", "", width_);
    for (const Workload test : tests)
      out_.print("  {:<{}}", name_of(test), 7 * workers_of(results_.settings, test).size() + 1);
    out_.print("\n{:{}}", "threads", width_);
    for (const Workload test : tests) {
      out_.print("  ");
      for (const std::uint32_t workers : workers_of(results_.settings, test)) out_.print("{:>7}", workers);
      out_.print(" ");
    }
    out_.print("{:>12}\n", "peak memory");
    for (const Subject& subject : results_.settings.subjects) block_row(tests, subject.name);
  }

  void verdict() {
    out_.print("\n{}", wrap(verdict_of(results_).paragraph, kWidth, ""));
    out_.print("{}", list_of(notes_of(results_), kWidth));
  }

  std::string text() && { return std::move(out_).take(); }

 private:
  [[nodiscard]] bool measured(Workload test, Mode mode) const {
    return std::ranges::any_of(results_.series, [&](const Series& s) { return s.job.test == test && s.job.mode == mode; });
  }
  [[nodiscard]] bool has(Mode mode) const {
    return std::ranges::any_of(kWorkloads, [&](Workload test) { return runs_as_processes(test) && measured(test, mode); });
  }

  void ideal() {
    out_.print("{:10} {:{}}", "ideal", "", width_);
    for (const std::uint32_t workers : results_.settings.workers) {
      out_.print("{:>7.2f}", ideal_speed(results_.settings.iterations, workers, results_.machine.cpus));
    }
    out_.print("\n");
  }

  void workload(Workload test, Mode mode) {
    bool first = true;
    for (const Subject& subject : results_.settings.subjects) {
      const Series* one = base_of(results_, {test, mode, subject.name, 1});
      if (one == nullptr) continue;
      Values speeds;
      std::optional<std::uint64_t> peak;
      for (const std::uint32_t workers : results_.settings.workers) {
        const Cell cell{test, mode, subject.name, workers};
        speeds.push_back(speed(results_, cell));
        peak = std::max(peak, peak_rss(results_.find(cell)));
      }
      out_.print("{:10} {:{}}", first ? name_of(test) : "", clipped(subject.name, width_), width_);
      first = false;
      for (const auto& value : speeds) out_.print("{}", cell_text(value, 2));
      const auto time = median_time(one);
      const double greatest =
          ideal_speed(results_.settings.iterations, results_.settings.workers.back(), results_.machine.cpus);
      out_.print("  {}{:>11} {:>11}\n", bars(speeds, greatest), time ? fmt::format("{:.0f} ms", 1e3 * *time) : "-",
                 peak ? bytes_text(*peak) : "-");
    }
  }

  void block_row(const std::vector<Workload>& tests, const std::string& subject) {
    std::optional<std::uint64_t> peak;
    out_.print("{:{}}", clipped(subject, width_), width_);
    for (const Workload test : tests) {
      out_.print("  ");
      for (const std::uint32_t workers : workers_of(results_.settings, test)) {
        const Series* series = results_.find({test, Mode::kThreads, subject, workers});
        out_.print("{}", cell_text(nanoseconds_per_operation(series), 1));
        peak = std::max(peak, peak_rss(series));
      }
      out_.print(" ");
    }
    out_.print("{:>12}\n", peak ? bytes_text(*peak) : "-");
  }

  const Results& results_;
  std::size_t width_;
  TextWriter out_;
};

}  // namespace

std::string table_of(const Results& results) {
  Tables tables(results);
  tables.head();
  for (const Mode mode : kModes) tables.workloads(mode);
  tables.block_tests();
  tables.verdict();
  return std::move(tables).text();
}

}  // namespace freehold::lab::scale
