// SPDX-License-Identifier: MIT
// The plan of `freehold scale`: its cells and their order. Every set measures each cell once, in an order of its own. Cells
// that differ in the subject alone follow each other, so that a disturbance of the machine falls on all subjects.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "cli/support/library.hpp"
#include "cli/support/worker_group.hpp"

namespace freehold::cli::scale {

// One measurement of `freehold scale`: Job describes it, Report has its result. It runs in a fresh process (`freehold
// scale-worker`, the same executable) under one allocator. The Job travels as command-line words, the Report as bytes.

// The scaling article's four workloads; the second one with a heap for each list; a component with one lock inside; the
// thread-local article's two tests.
enum class Workload : std::uint8_t { kCompute, kAllocate, kMixed, kMemory, kObject, kLocked, kIsolation, kHandover };
inline constexpr Names<Workload, 8> kWorkloads{
    {"compute", "allocate", "mixed", "memory", "object", "locked", "isolation", "handover"}};
[[nodiscard]] constexpr const auto& names_of(Workload) { return kWorkloads; }
// The default; and the default with a pool of processes.
inline constexpr std::array kUsualWorkloads{Workload::kCompute, Workload::kAllocate,  Workload::kMixed,
                                            Workload::kMemory,  Workload::kIsolation, Workload::kHandover};
inline constexpr std::array kPoolWorkloads{Workload::kCompute, Workload::kAllocate, Workload::kLocked};
// The allocator of the thread-local article's tests: the process's malloc, which may be a preloaded library, or the
// article's allocator over the process's malloc. That exists as published, and with batched remote frees in either list.
enum class Source : std::uint8_t { kMalloc, kOwnerArticle, kOwnerMutex, kOwnerLockFree };
inline constexpr Names<Source, 4> kSources{{"malloc", "owner-article", "owner-mutex", "owner-lock-free"}};
[[nodiscard]] constexpr const auto& names_of(Source) { return kSources; }
using cli::name_of;

// The first six run as threads and as processes; the two tests of the thread-local article are about threads.
[[nodiscard]] constexpr bool runs_as_processes(Workload test) { return test <= Workload::kLocked; }
// Tasks of a pool cannot keep data from one task to the next.
[[nodiscard]] constexpr bool runs_in_a_pool(Workload test) { return runs_as_processes(test) && test != Workload::kMemory; }

struct Job {
  Workload test = Workload::kCompute;
  Mode mode = Mode::kThreads;
  Source source = Source::kMalloc;
  std::uint32_t workers = 1;
  std::uint32_t iterations = 24;  // shared by the workers; handover: by the pairs of workers
  std::uint64_t units = 1;        // of work in an iteration; calibrated, the same for every allocator and worker count
  bool one_cpu = false;           // all workers share one CPU

  friend bool operator==(const Job&, const Job&) = default;
};

// The iterations of participant `index` out of `participants`: equal shares, one more for the first ones.
[[nodiscard]] constexpr std::uint32_t share_of(std::uint32_t iterations, std::uint32_t participants, std::uint32_t index) {
  return iterations / participants + (index < iterations % participants ? 1 : 0);
}

// Operations (rounds, list nodes, words, blocks) in a job; the time per operation divides by them.
[[nodiscard]] std::uint64_t operations_of(const Job& job);
// An operation's name in tables: "round", "node", "word", "block".
[[nodiscard]] std::string_view operation_name(Workload test);

struct Report {
  static constexpr std::uint64_t kMagic = 0x65726f6373663031;
  std::uint64_t magic = kMagic;
  GroupReport group;
  char malloc_library[480] = {};  // the file that malloc came from
};

inline constexpr const char* kWorkerCommand = "scale-worker";

inline constexpr std::tuple kJobFields{&Job::test,       &Job::mode,  &Job::source, &Job::workers,
                                       &Job::iterations, &Job::units, &Job::one_cpu};

// An allocator, or the thread-local article's allocator over the system's (for its two tests only).
struct Subject {
  std::string name;
  std::string library;  // preloaded; empty: none
  Source source = Source::kMalloc;
};

struct Settings {
  std::vector<Subject> subjects;
  std::vector<std::uint32_t> workers{1, 2, 3, 4, 6};
  std::vector<Workload> tests{kUsualWorkloads.begin(), kUsualWorkloads.end()};
  std::vector<Mode> modes{Mode::kThreads, Mode::kProcesses};
  std::uint32_t iterations = 24;
  std::uint32_t repeat = 3;
  std::uint32_t milliseconds = 150;  // that one worker needs for a job, about
  bool one_cpu = false;              // all workers of a measurement share one CPU
};

// One cell of the tables: measured once in every set.
struct Cell {
  Workload test = Workload::kCompute;
  Mode mode = Mode::kThreads;
  std::size_t subject = 0;
  std::uint32_t workers = 1;

  [[nodiscard]] std::tuple<Workload, Mode, std::uint32_t> group() const { return {test, mode, workers}; }
  friend bool operator==(const Cell&, const Cell&) = default;
};

// "1,2,6" -> sorted, each once, and 1 in any case: everything is normalised to one worker. Throws Failure.
[[nodiscard]] std::vector<std::uint32_t> parse_workers(const std::string& text);
// The allocators, then the thread-local article's three. Throws Failure if two have the same name.
[[nodiscard]] std::vector<Subject> subjects_of(const std::vector<Allocator>& allocators);

// The numbers of workers that make sense for a test: pairs for the handover.
[[nodiscard]] std::vector<std::uint32_t> workers_of(const Settings& settings, Workload test);
// Every cell of the experiment, in the order of the tables.
[[nodiscard]] std::vector<Cell> cells_of(const Settings& settings);

}  // namespace freehold::cli::scale
