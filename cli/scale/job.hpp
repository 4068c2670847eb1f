// The vocabulary of the scaling experiment: what one measurement is, and what it yields. One measurement runs in a fresh
// process (freehold scale-worker, the same executable) under one allocator; Job goes in as arguments, Report comes back as
// bytes through a pipe.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "cli/support/crew.hpp"

namespace freehold::cli::scale {

// The scaling article's four workloads; a component that somebody else has locked; the thread-local article's two tests.
enum class Workload : std::uint8_t { kCompute, kAllocate, kMixed, kMemory, kLocked, kIsolation, kHandover };
inline constexpr std::array kWorkloads{Workload::kCompute, Workload::kAllocate,  Workload::kMixed,   Workload::kMemory,
                                       Workload::kLocked,  Workload::kIsolation, Workload::kHandover};
// What is measured unless somebody chooses; and what a pool is about.
inline constexpr std::array kUsualWorkloads{Workload::kCompute, Workload::kAllocate,  Workload::kMixed,
                                            Workload::kMemory,  Workload::kIsolation, Workload::kHandover};
inline constexpr std::array kPoolWorkloads{Workload::kCompute, Workload::kAllocate, Workload::kLocked};
// Whose blocks the two tests use: the process's malloc, which a preloaded library may be, or the thread-local article's
// allocator over the process's malloc: to the letter, or gathering what it hands over, with either remote-free list.
enum class Source : std::uint8_t { kMalloc, kOwnerArticle, kOwnerMutex, kOwnerLockFree };
inline constexpr std::array kSources{Source::kMalloc, Source::kOwnerArticle, Source::kOwnerMutex, Source::kOwnerLockFree};

[[nodiscard]] std::string_view name_of(Workload test);
[[nodiscard]] std::string_view name_of(Source source);
[[nodiscard]] std::optional<Workload> workload_of(std::string_view name);
[[nodiscard]] std::optional<Source> source_of(std::string_view name);

// The first five run as threads and as processes; the two tests of the thread-local article are about threads.
[[nodiscard]] constexpr bool runs_as_processes(Workload test) { return test <= Workload::kLocked; }
// And as tasks of a pool, those that keep nothing from one task to the next.
[[nodiscard]] constexpr bool runs_in_a_pool(Workload test) { return runs_as_processes(test) && test != Workload::kMemory; }

struct Job {
  Workload test = Workload::kCompute;
  Mode mode = Mode::kThreads;
  Source source = Source::kMalloc;
  std::uint32_t workers = 1;
  std::uint32_t iterations = 24;  // shared by the workers; handover: by the pairs of workers
  std::uint64_t units = 1;        // of work in an iteration; calibrated, the same for every allocator and worker count

  friend bool operator==(const Job&, const Job&) = default;
};

// The iterations of one of `crews` that share them: equal, or one more for the first ones.
[[nodiscard]] constexpr std::uint32_t share_of(std::uint32_t iterations, std::uint32_t crews, std::uint32_t index) {
  return iterations / crews + (index < iterations % crews ? 1 : 0);
}

// Operations (rounds, list nodes, words, blocks) in a job: what its time is divided by.
[[nodiscard]] std::uint64_t operations_of(const Job& job);
// What an operation is, for people: "round", "node", "word", "block".
[[nodiscard]] std::string_view operation_name(Workload test);

struct Report {
  static constexpr std::uint64_t kMagic = 0x65726f6373663031;
  std::uint64_t magic = kMagic;
  CrewReport crew;
  char malloc_library[480] = {};  // the file that malloc came from
};

}  // namespace freehold::cli::scale
