// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "lab/scale/experiment.hpp"

namespace freehold::lab::scale {
namespace {

constexpr double kNoisySpread = 0.20;  // sets that differ by more than this are mentioned

constexpr std::string_view kSystem = "system", kFreehold = "freehold";

bool has_subject(const Results& results, std::string_view name) {
  return std::ranges::count(results.settings.subjects, name, &Subject::name) > 0;
}

std::vector<std::uint32_t> counts_above_one(const Results& results) {
  std::vector<std::uint32_t> counts = results.settings.workers;
  std::erase(counts, 1u);
  return counts;
}

// In every set, how `of` scaled, relative to how `to` did.
Sets ratios(const Results& results, const Cell& of, const Cell& to) {
  return quotient(speeds_of(results, of), speeds_of(results, to));
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

Claim claim_of(std::string id, std::string statement) { return {.id = std::move(id), .statement = std::move(statement)}; }

// How lists scale in this mode under the system's allocator, relative to computing. `who`: "threads".
void judge_lists(const Results& results, Claim& claim, Mode mode, std::string_view who, std::uint32_t n, bool at_least) {
  const Cell of{Workload::kAllocate, mode, kSystem, n}, control{Workload::kCompute, mode, kSystem, n};
  claim.figure = fmt::format("{} {} build and free lists {} times as fast as one, and compute {} times as fast", n, who,
                             speed_text(results, of), speed_text(results, control));
  claim.judge(ratios(results, of, control), kScales, at_least);
}

Claim system_threads(const Results& results, std::uint32_t n) {
  Claim claim = claim_of("system-threads-degrade", "threads on the system allocator degrade");
  judge_lists(results, claim, Mode::kThreads, "threads", n, false);
  return claim;
}

Claim processes(const Results& results, std::uint32_t n) {
  Claim claim = claim_of("processes-scale", "processes scale");
  judge_lists(results, claim, Mode::kProcesses, "processes", n, true);
  return claim;
}

Claim freehold_threads(const Results& results, std::uint32_t n) {
  Claim claim = claim_of("freehold-threads-scale", "Freehold's threads scale like processes");
  if (!has_subject(results, kFreehold)) return claim;
  const Cell of{Workload::kAllocate, Mode::kThreads, kFreehold, n};
  const Cell to{Workload::kAllocate, Mode::kProcesses, kSystem, n};
  claim.figure =
      fmt::format("under Freehold {} threads are {} times as fast as one, processes on the system allocator {} times", n,
                  speed_text(results, of), speed_text(results, to));
  const auto ours = median_time(results.find(of));
  const auto theirs = median_time(results.find({Workload::kAllocate, Mode::kThreads, kSystem, n}));
  if (ours && theirs) {
    claim.figure += fmt::format("; the same lists take them {:.0f} ms, and {:.0f} ms on the system allocator", 1e3 * *ours,
                                1e3 * *theirs);
  }
  claim.judge(ratios(results, of, to), kLikeProcesses, true);
  return claim;
}

bool has_pool(const Results& results) { return std::ranges::count(results.settings.modes, Mode::kPool) > 0; }

Claim pool(const Results& results, std::uint32_t n) {
  Claim claim = claim_of("pool-scales", "a pool of worker processes scales");
  judge_lists(results, claim, Mode::kPool, "threads that call a pool", n, true);
  const auto time = median_time(results.find({Workload::kAllocate, Mode::kPool, kSystem, n}));
  const auto threads = median_time(results.find({Workload::kAllocate, Mode::kThreads, kSystem, n}));
  const auto ours = median_time(results.find({Workload::kAllocate, Mode::kThreads, kFreehold, n}));
  if (time && threads && ours)
    claim.figure += fmt::format(
        "; the same lists take {:.0f} ms in the pool, {:.0f} ms in threads, {:.0f} ms in threads "
        "under Freehold",
        1e3 * *time, 1e3 * *threads, 1e3 * *ours);
  return claim;
}

Claim pool_unlocks(const Results& results, std::uint32_t n) {
  Claim claim = claim_of("pool-unlocks", "a pool frees a component from its own lock");
  const Series* threads = results.find({Workload::kLocked, Mode::kThreads, kSystem, n});
  const Series* pooled = results.find({Workload::kLocked, Mode::kPool, kSystem, n});
  claim.judge(quotient(times_of(threads), times_of(pooled)), kUnlocks, true);
  if (claim.ratio)
    claim.figure =
        fmt::format("{} workers of a pool do {:.2f} times what {} threads do with a component that holds one lock", n,
                    claim.ratio->median, n);
  return claim;
}

std::string paragraph_of(const Results& results, const std::vector<Claim>& claims) {
  std::string text =
      fmt::format("On this machine with {} CPU{}: ", results.machine.cpus, results.machine.cpus == 1 ? "" : "s");
  bool first = true;
  for (const Claim& claim : claims) {
    if (!first) text += ' ';
    first = false;
    text += fmt::format("\"{}\" is {}", claim.statement, name_of(claim.outcome));
    if (claim.ratio) text += fmt::format(" ({}: {})", claim.figure, ratio_text(claim));
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
  std::vector<Sets> times;
  for (const Series& series : results.series) times.push_back(times_of(&series));
  note_spread(kNoisySpread, times, notes);
  if (results.settings.repeat == 1) notes.push_back("There was one set only: differences of some ten percent mean nothing.");
}

std::vector<Claim> claims_of(const Results& results) {
  if (!has_subject(results, kSystem) || counts_above_one(results).empty()) return {};
  const std::uint32_t n = telling_count(results);
  std::vector<Claim> claims{system_threads(results, n), processes(results, n), freehold_threads(results, n)};
  if (has_pool(results)) {
    claims.push_back(pool(results, n));
    claims.push_back(pool_unlocks(results, n));
  }
  return claims;
}

}  // namespace

Verdict verdict_of(const Results& results) {
  Verdict verdict;
  verdict.claims = judge_undisturbed(results, claims_of);
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
  }
  return verdict;
}

std::vector<std::string> notes_of(const Results& results) {
  std::vector<std::string> notes = results.notes;
  std::ranges::move(first_notes(results), std::back_inserter(notes));
  note_crowding(results, notes);
  note_noise(results, notes);
  return notes;
}

}  // namespace freehold::lab::scale
