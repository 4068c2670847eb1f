// SPDX-License-Identifier: MIT
#include "lab/scale/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "lab/experiment/series.hpp"

namespace freehold::cli::scale {
namespace {

constexpr double kNoisySpread = 0.20;  // sets that differ by more than this are mentioned

std::optional<std::size_t> subject_named(const Results& results, std::string_view name) {
  const auto found = std::ranges::find(results.settings.subjects, name, &Subject::name);
  if (found == results.settings.subjects.end()) return {};
  return static_cast<std::size_t>(found - results.settings.subjects.begin());
}

std::vector<std::uint32_t> counts_above_one(const Results& results) {
  std::vector<std::uint32_t> counts = results.settings.workers;
  std::erase(counts, 1u);
  return counts;
}

// In every set, the geometric mean over the worker counts of how `of` scaled, relative to how `to` did.
std::vector<double> ratios(const Results& results, Cell of, Cell to) {
  std::vector<double> sets;
  for (std::size_t set = 0; set < results.settings.repeat; ++set) {
    std::vector<double> by_count;
    for (const std::uint32_t workers : counts_above_one(results)) {
      of.workers = to.workers = workers;
      const auto a = speed_in_set(results, of, set);
      const auto b = speed_in_set(results, to, set);
      if (a && b) by_count.push_back(*a / *b);
    }
    // A set that was interrupted is judged only if it has every count: a mean over others is another mean.
    if (!by_count.empty() && by_count.size() == counts_above_one(results).size()) sets.push_back(geometric_mean(by_count));
  }
  return sets;
}

// The largest number of workers that still have a CPU each; the smallest above one if none has.
std::uint32_t telling_count(const Results& results) {
  const std::vector<std::uint32_t> counts = counts_above_one(results);
  const auto beyond = std::ranges::upper_bound(counts, results.machine.cpus);
  return beyond == counts.begin() ? counts.front() : *(beyond - 1);
}

std::string speed_text(const Results& results, Cell cell) {
  const auto value = speed(results, cell);
  return value ? fmt::format("{:.2f}", *value) : "?";
}

Claim unmeasured(std::string_view id, std::string statement) {
  Claim claim;
  claim.id = id;
  claim.statement = std::move(statement);
  return claim;
}

void decide(Claim& claim, const std::vector<double>& sets, double threshold, bool below_reproduces) {
  claim.ratio = median(sets);
  claim.least = std::ranges::min(sets);
  claim.greatest = std::ranges::max(sets);
  claim.outcome = scale::decide(sets, threshold, below_reproduces);
}

Claim judge(const Results& results, Claim claim, const Cell& of, const Cell& to, double threshold, bool below_reproduces) {
  const std::vector<double> sets = ratios(results, of, to);
  if (sets.empty()) return claim;
  decide(claim, sets, threshold, below_reproduces);
  return claim;
}

Claim system_threads(const Results& results, std::size_t system, std::uint32_t n) {
  const Cell of{Workload::kAllocate, Mode::kThreads, system, n};
  const Cell control{Workload::kCompute, Mode::kThreads, system, n};
  Claim claim = unmeasured("system-threads-degrade", "threads on the system allocator degrade");
  claim.figures = fmt::format("{} threads build and free lists {} times as fast as one, and compute {} times as fast", n,
                              speed_text(results, of), speed_text(results, control));
  return judge(results, claim, of, control, kScales, true);
}

Claim processes(const Results& results, std::size_t system, std::uint32_t n) {
  const Cell of{Workload::kAllocate, Mode::kProcesses, system, n};
  const Cell control{Workload::kCompute, Mode::kProcesses, system, n};
  Claim claim = unmeasured("processes-scale", "processes scale");
  claim.figures = fmt::format("{} processes build and free lists {} times as fast as one, and compute {} times as fast", n,
                              speed_text(results, of), speed_text(results, control));
  return judge(results, claim, of, control, kScales, false);
}

Claim freehold_threads(const Results& results, std::size_t system, std::optional<std::size_t> freehold, std::uint32_t n) {
  Claim claim = unmeasured("freehold-threads-scale", "Freehold's threads scale like processes");
  if (!freehold) return claim;
  const Cell of{Workload::kAllocate, Mode::kThreads, *freehold, n};
  const Cell to{Workload::kAllocate, Mode::kProcesses, system, n};
  claim.figures =
      fmt::format("under Freehold {} threads are {} times as fast as one, processes on the system allocator {} times", n,
                  speed_text(results, of), speed_text(results, to));
  const auto ours = median_time(results.find(of));
  const auto theirs = median_time(results.find({Workload::kAllocate, Mode::kThreads, system, n}));
  if (ours && theirs) {
    claim.figures += fmt::format("; the same lists take them {:.0f} ms, and {:.0f} ms on the system allocator", 1e3 * *ours,
                                 1e3 * *theirs);
  }
  return judge(results, claim, of, to, kLikeProcesses, false);
}

bool has_pool(const Results& results) { return std::ranges::count(results.settings.modes, Mode::kPool) > 0; }

Claim pool(const Results& results, std::size_t system, std::optional<std::size_t> freehold, std::uint32_t n) {
  const Cell of{Workload::kAllocate, Mode::kPool, system, n};
  const Cell control{Workload::kCompute, Mode::kPool, system, n};
  Claim claim = unmeasured("pool-scales", "a pool of worker processes scales");
  claim.figures = fmt::format(
      "{} threads that call a pool have lists built and freed {} times as fast as one, and compute "
      "{} times as fast",
      n, speed_text(results, of), speed_text(results, control));
  const auto time = median_time(results.find(of));
  const auto threads = median_time(results.find({Workload::kAllocate, Mode::kThreads, system, n}));
  const auto ours = freehold ? median_time(results.find({Workload::kAllocate, Mode::kThreads, *freehold, n})) : std::nullopt;
  if (time && threads && ours)
    claim.figures += fmt::format(
        "; the same lists take {:.0f} ms in the pool, {:.0f} ms in threads, {:.0f} ms in threads "
        "under Freehold",
        1e3 * *time, 1e3 * *threads, 1e3 * *ours);
  return judge(results, claim, of, control, kScales, false);
}

Claim pool_unlocks(const Results& results, std::size_t system, std::uint32_t n) {
  Claim claim = unmeasured("pool-unlocks", "a pool frees a component from its own lock");
  const Series* threads = results.find({Workload::kLocked, Mode::kThreads, system, n});
  const Series* pooled = results.find({Workload::kLocked, Mode::kPool, system, n});
  if (threads == nullptr || pooled == nullptr) return claim;
  const std::vector<double> sets = ratios_of(*threads, *pooled, [](const Sample& a, const Sample& b) {
    return static_cast<double>(a.elapsed_ns) / static_cast<double>(b.elapsed_ns);
  });
  if (sets.empty()) return claim;
  decide(claim, sets, kUnlocks, false);
  claim.figures = fmt::format("{} workers of a pool do {:.2f} times what {} threads do with a component that holds one lock",
                              n, *claim.ratio, n);
  return claim;
}

// The share of their CPUs that the compute workers got. They never wait, so other processes had the rest.
std::optional<double> share_of_cpus(const Results& results) {
  std::vector<double> shares;
  for (const Series& series : results.series) {
    if (series.cell.test != Workload::kCompute || series.cell.workers > results.machine.cpus) continue;
    std::ranges::move(figures_of(series,
                                 [&](const Sample& sample) {
                                   return static_cast<double>(sample.cpu_ns) / static_cast<double>(sample.elapsed_ns) /
                                          series.cell.workers;
                                 }),
                      std::back_inserter(shares));
  }
  return median_if_any(std::move(shares));
}

std::string paragraph_of(const Results& results, const std::vector<Claim>& claims) {
  std::string text =
      fmt::format("On this machine with {} CPU{}: ", results.machine.cpus, results.machine.cpus == 1 ? "" : "s");
  bool first = true;
  for (const Claim& claim : claims) {
    if (!first) text += ' ';
    first = false;
    text += fmt::format("\"{}\" is {}", claim.statement, name_of(claim.outcome));
    if (claim.ratio) text += fmt::format(" ({})", claim.figures);
    text += '.';
  }
  return text;
}

std::string join_counts(const std::vector<std::uint32_t>& counts) {
  if (counts.size() == 1) return std::to_string(counts.front());
  return fmt::format("{} and {}", fmt::join(counts.begin(), counts.end() - 1, ", "), counts.back());
}

void note_crowding(const Results& results, std::vector<std::string>& notes) {
  std::vector<std::uint32_t> beyond = results.settings.workers;
  std::erase_if(beyond, [&](std::uint32_t n) { return n <= results.machine.cpus; });
  if (beyond.empty()) return;
  notes.push_back(
      fmt::format("{} workers share {} CPU{}: they cannot be faster than {} would be, and an uneven split between the "
                  "CPUs can make them slower.",
                  join_counts(beyond), results.machine.cpus, results.machine.cpus == 1 ? "" : "s", results.machine.cpus));
}

void note_noise(const Results& results, std::vector<std::string>& notes) {
  SpreadNote spreads(kNoisySpread);
  for (const Series& series : results.series) spreads.add(times_of(series));
  spreads.write_to(notes);
  if (results.settings.repeat == 1) notes.push_back("There was one set only: differences of some ten percent mean nothing.");
}

void note_busy_machine(const Results& results, std::vector<std::string>& notes) {
  const auto share = share_of_cpus(results);
  if (!share || *share >= 1 - kBusyMachine) return;
  notes.push_back(fmt::format(
      "Other processes used the CPUs: the workers got {:.0f}% of theirs. Repeat this on a quiet machine.", 100 * *share));
}

}  // namespace

Outcome decide(const std::vector<double>& ratios, double threshold, bool below_reproduces) {
  const double doubt = ratios.size() == 1 ? kOneSet : 1;
  const double least = std::ranges::min(ratios) / doubt, greatest = std::ranges::max(ratios) * doubt;
  if (below_reproduces ? greatest <= threshold : least >= threshold) return Outcome::kReproduced;
  if (below_reproduces ? least > threshold : greatest < threshold) return Outcome::kRefuted;
  return Outcome::kUndecided;
}

Verdict verdict_of(const Results& results) {
  Verdict verdict;
  const auto system = subject_named(results, "system");
  if (system && !counts_above_one(results).empty()) {
    const std::uint32_t n = telling_count(results);
    verdict.claims = {system_threads(results, *system, n), processes(results, *system, n),
                      freehold_threads(results, *system, subject_named(results, "freehold"), n)};
    if (has_pool(results)) {
      verdict.claims.push_back(pool(results, *system, subject_named(results, "freehold"), n));
      verdict.claims.push_back(pool_unlocks(results, *system, n));
    }
  }
  const bool busy = share_of_cpus(results).value_or(1) < 1 - kBusyMachine;
  for (Claim& claim : verdict.claims) {
    if (busy && claim.outcome != Outcome::kNotMeasured) claim.outcome = Outcome::kUndecided;
  }
  if (verdict.claims.empty()) {
    verdict.paragraph = "No verdict: it needs the system allocator and more than one worker.";
  } else if (results.machine.cpus == 1) {
    for (Claim& claim : verdict.claims) claim.outcome = Outcome::kNotMeasured;
    verdict.paragraph = "No verdict: on one CPU nothing can scale.";
  } else if (std::ranges::all_of(verdict.claims,
                                 [](const Claim& claim) { return claim.outcome == Outcome::kNotMeasured; })) {
    verdict.paragraph = "No verdict: it needs whole sets of the workloads compute and allocate.";
  } else {
    verdict.paragraph = paragraph_of(results, verdict.claims);
    if (busy) verdict.paragraph += " Nothing is decided, because other processes used the CPUs.";
  }
  return verdict;
}

std::vector<std::string> failures_of(const Results& results) {
  std::vector<std::string> failures;
  for (const Series& series : results.series) {
    if (series.failure.empty()) continue;
    std::string note =
        failure_note(results.settings.subjects[series.cell.subject].name,
                     fmt::format("{} ({})", name_of(series.cell.test), name_of(series.cell.mode)), series.failure);
    if (std::ranges::find(failures, note) == failures.end()) failures.push_back(std::move(note));  // once for all workers
  }
  return failures;
}

std::vector<std::string> notes_of(const Results& results) {
  std::vector<std::string> notes = results.notes;
  if (!results.complete) notes.emplace_back(kInterruptedNote);
  std::ranges::move(failures_of(results), std::back_inserter(notes));
  note_busy_machine(results, notes);
  note_crowding(results, notes);
  note_noise(results, notes);
  return notes;
}

}  // namespace freehold::cli::scale
