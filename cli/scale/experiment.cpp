#include "cli/scale/experiment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "cli/scale/measure.hpp"
#include "cli/support/sets.hpp"

namespace freehold::cli::scale {
namespace {
using Clock = std::chrono::steady_clock;

// A worker that needs fifty times its time is not slow but stuck; ten seconds are for machines that are busy.
std::chrono::seconds limit_of(const Settings& settings) {
  return std::chrono::seconds(10 + 50 * settings.milliseconds / 1000);
}

std::string describe(const Settings& settings, const Cell& cell) {
  return fmt::format("{}, {} {}, {}", name_of(cell.test), cell.workers, name_of(cell.mode),
                     settings.subjects[cell.subject].name);
}

class Experiment {
 public:
  Experiment(const Settings& settings, Interrupts& interrupts, const Watch& watch) : interrupts_(interrupts), watch_(watch) {
    results_.settings = settings;
    results_.machine = this_machine();
    results_.date = today();
    for (const Cell& cell : cells_of(settings))
      results_.series.push_back({.cell = cell, .units = 0, .samples = {}, .failure = {}});
  }

  Results run() {
    const auto begin = Clock::now();
    results_.complete = calibrate() && measure_all();
    results_.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    return std::move(results_);
  }

 private:
  const Settings& settings() const { return results_.settings; }

  // One measurement with the plain allocator and the fewest workers, of `units` units. Nanoseconds, or none: interrupted or
  // failed.
  std::optional<double> try_units(Workload test, std::uint64_t units) {
    const Job job{.test = test,
                  .mode = Mode::kThreads,
                  .source = Source::kMalloc,
                  .workers = workers_of(settings(), test).front(),
                  .iterations = settings().iterations,
                  .units = units};
    const Measured measured = measure(job, "", limit_of(settings()), interrupts_);
    const Report* report = std::get_if<Report>(&measured);
    if (const NoReport* none = std::get_if<NoReport>(&measured)) {
      results_.notes.push_back(fmt::format("{} could not be calibrated: {}", name_of(test), none->why));
    }
    return report == nullptr ? std::nullopt
                             : std::optional(static_cast<double>(std::max<std::uint64_t>(report->crew.elapsed_ns, 1)));
  }

  // Units in an iteration so that all iterations take the wished time. Grows in steps: the first unit also pays for a cold
  // start.
  std::uint64_t units_for(Workload test) {
    const double wished_ns = 1e6 * settings().milliseconds;
    std::uint64_t units = 1;
    for (;;) {
      const auto taken_ns = try_units(test, units);
      if (!taken_ns) return 1;
      const double factor = wished_ns / *taken_ns;
      const bool close = factor < 4;
      units =
          std::max<std::uint64_t>(1, static_cast<std::uint64_t>(static_cast<double>(units) * std::min(factor, 30.0) + 0.5));
      if (close) return units;
    }
  }

  bool calibrate() {
    for (const Workload test : settings().tests) {
      watch_({.done = 0, .of = 0, .what = std::string(name_of(test))});
      const std::uint64_t units = units_for(test);
      if (interrupts_.arrived() != 0) return false;
      for (Series& series : results_.series) {
        if (series.cell.test == test) series.units = units;
      }
    }
    return true;
  }

  bool measure_all() {
    const std::vector<Cell> cells = cells_of(settings());
    return measure_sets(
        settings().repeat, cells.size(), [&](std::uint32_t set) { return order_of(cells, set); },
        [&](std::size_t done, std::size_t of, std::size_t i) {
          watch_({.done = done, .of = of, .what = describe(settings(), cells[i])});
        },
        [&](std::size_t i, std::uint32_t set) { return measure_cell(results_.series[i], set); });
  }

  // False: interrupted.
  bool measure_cell(Series& series, std::uint32_t set) {
    const Subject& subject = settings().subjects[series.cell.subject];
    if (!series.failure.empty()) return true;  // it would fail again, perhaps by waiting for its time limit
    const Measured measured = measure(job_of(results_, series), subject.library, limit_of(settings()), interrupts_);
    return keep(measured, series, set, [](const Report& report) {
      return Sample{report.crew.elapsed_ns, report.crew.cpu_ns, report.crew.peak_rss_bytes};
    });
  }

  Results results_;
  Interrupts& interrupts_;
  const Watch& watch_;
};

}  // namespace

Results run_experiment(const Settings& settings, Interrupts& interrupts, const Watch& watch) {
  return Experiment(settings, interrupts, watch).run();
}

}  // namespace freehold::cli::scale
