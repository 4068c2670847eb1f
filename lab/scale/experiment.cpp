// SPDX-License-Identifier: MIT
#include "lab/scale/experiment.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lab/experiment/run.hpp"

namespace freehold::cli::scale {
namespace {

class Experiment {
 public:
  Experiment(const Settings& settings, Interrupts& interrupts, Progress& progress)
      : interrupts_(interrupts), progress_(progress) {
    results_.settings = settings;
    begin_series(results_.series, cells_of(settings));
  }

  Results run() {
    record_run(results_, [this] { return calibrate() && measure_all(); });
    return std::move(results_);
  }

 private:
  const Settings& settings() const { return results_.settings; }

  Measured<Report> measure_job(const Job& job, const std::string& library) {
    return measure(job, library, settings().milliseconds, interrupts_);
  }

  // Nanoseconds of `units` units with the plain allocator and the fewest workers. None: interrupted or failed.
  std::optional<double> try_units(Workload test, std::uint64_t units) {
    const Job job{.test = test,
                  .mode = Mode::kThreads,
                  .source = Source::kMalloc,
                  .workers = workers_of(settings(), test).front(),
                  .iterations = settings().iterations,
                  .units = units,
                  .one_cpu = settings().one_cpu};
    const Measured<Report> measured = measure_job(job, "");
    const Report* report = std::get_if<Report>(&measured);
    if (const NoReport* none = std::get_if<NoReport>(&measured)) {
      results_.notes.push_back(fmt::format("{} could not be calibrated: {}", name_of(test), none->why));
    }
    return report == nullptr ? std::nullopt
                             : std::optional(static_cast<double>(std::max<std::uint64_t>(report->group.elapsed_ns, 1)));
  }

  // Units in an iteration so that all iterations take the wished time. Grows in steps, because the first unit also pays for
  // a cold start.
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
      progress_.show(0, 0, std::string(name_of(test)));
      results_.units_of(test) = units_for(test);
      if (interrupts_.arrived() != 0) return false;
    }
    return true;
  }

  bool measure_all() {
    const auto subject_of = [this](const Cell& cell) -> const Subject& { return settings().subjects[cell.subject]; };
    return measure_sets(
        settings().repeat, results_.series, progress_,
        [&](const Cell& cell) {
          return fmt::format("{}, {} {}, {}", name_of(cell.test), cell.workers, name_of(cell.mode), subject_of(cell).name);
        },
        [&](const Series& series) { return measure_job(job_of(results_, series), subject_of(series.cell).library); },
        [](const Report& report) {
          return Sample{report.group.elapsed_ns, report.group.cpu_ns, report.group.peak_rss_bytes};
        });
  }

  Results results_;
  Interrupts& interrupts_;
  Progress& progress_;
};

}  // namespace

Results run_experiment(const Settings& settings, Interrupts& interrupts, Progress& progress) {
  return Experiment(settings, interrupts, progress).run();
}

}  // namespace freehold::cli::scale
