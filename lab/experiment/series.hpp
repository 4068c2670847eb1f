// SPDX-License-Identifier: MIT
// The results of an experiment: one series of reports for each job, which is a cell of its tables, and how the run went.
#pragma once
#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lab/experiment/sets.hpp"
#include "tools/support/machine.hpp"

namespace freehold::lab {

// The measurements of one job.
template <class Job, class Report>
struct JobSeries {
  Job job;
  std::vector<std::optional<Report>> samples;  // one place for each set that was begun
  std::string failure;                         // why a sample is missing, if not for lack of time
};

// The place and the time of a run.
struct RunRecord {
  Machine machine;
  std::string date;      // the beginning; UTC, ISO 8601
  bool complete = true;  // false: interrupted
  double seconds = 0;    // from beginning to end
};

template <class Settings, class Job, class Report>
struct ExperimentResults : RunRecord {
  using Series = JobSeries<Job, Report>;

  ExperimentResults() = default;
  // A series without samples for each job.
  ExperimentResults(Settings chosen, std::vector<Job> jobs) : settings(std::move(chosen)) {
    for (Job& job : jobs) series.push_back({std::move(job), {}, {}});
  }

  Settings settings;
  std::vector<Series> series;  // in the order of the tables

  // The series of the first job that is(job); null if no job is.
  [[nodiscard]] const Series* find_if(auto is) const {
    const auto found = std::ranges::find_if(series, is, &Series::job);
    return found == series.end() ? nullptr : &*found;
  }
  [[nodiscard]] bool has_failures() const {
    return std::ranges::any_of(series, [](const Series& one) { return !one.failure.empty(); });
  }
};

// From this share of the CPUs on that other programs had beside a measurement, it decides nothing.
inline constexpr double kBusyMachine = 0.15;
template <class Report>
[[nodiscard]] bool is_disturbed(const std::optional<Report>& sample) {
  return sample && sample->others > kBusyMachine;
}

// The results without the disturbed measurements: what is decided is decided by these.
template <class Settings, class Job, class Report>
void drop_disturbed(ExperimentResults<Settings, Job, Report>& results) {
  for (auto& series : results.series) {
    for (auto& sample : series.samples)
      if (is_disturbed(sample)) sample.reset();
  }
}
template <class Results>
[[nodiscard]] Results undisturbed(Results results) {
  drop_disturbed(results);
  return results;
}

// figure(sample) in each set; null: there is no series.
template <class Job, class Report>
[[nodiscard]] Sets sets_of(const JobSeries<Job, Report>* series, auto figure) {
  Sets sets;
  if (series == nullptr) return sets;
  for (const auto& sample : series->samples) sets.push_back(sample ? std::optional<double>(figure(*sample)) : std::nullopt);
  return sets;
}

// The failed measurements, a sentence each: "boost-pool failed in short, fresh: killed by signal 11." Jobs that differ only
// in what a sentence does not say share one.
template <class Settings, class Job, class Report>
[[nodiscard]] std::vector<std::string> failures_of(const ExperimentResults<Settings, Job, Report>& results) {
  std::vector<std::string> failures;
  for (const auto& series : results.series) {
    if (series.failure.empty()) continue;
    std::string note = series.job.name() + " failed in " + series.job.place() + ": " + series.failure + '.';
    if (std::ranges::find(failures, note) == failures.end()) failures.push_back(std::move(note));
  }
  return failures;
}

inline constexpr std::string_view kInterruptedNote = "Interrupted: only the measurements finished until then are shown.";

// Adds a sentence if some of the shares of the CPUs, one for each measurement, are those of a busy machine.
void note_busy(const std::vector<double>& others, std::vector<std::string>& notes);
template <class Settings, class Job, class Report>
void add_others(const ExperimentResults<Settings, Job, Report>& results, std::vector<double>& others) {
  for (const auto& series : results.series) {
    for (const auto& sample : series.samples)
      if (sample) others.push_back(sample->others);
  }
}

// Notes below the figures that every experiment may need: it was interrupted; measurements failed; the machine was busy.
template <class Settings, class Job, class Report>
[[nodiscard]] std::vector<std::string> first_notes(const ExperimentResults<Settings, Job, Report>& results) {
  std::vector<std::string> notes = failures_of(results);
  if (!results.complete) notes.emplace(notes.begin(), kInterruptedNote);
  std::vector<double> others;
  add_others(results, others);
  note_busy(others, notes);
  return notes;
}
// Adds a sentence if sets differ by more than `limit` of their median. Each element: the figures that one median is of.
void note_spread(double limit, const std::vector<Sets>& medians, std::vector<std::string>& notes);
// (greatest − least) / median.
[[nodiscard]] double spread_of(const Sets& sets);

}  // namespace freehold::lab
