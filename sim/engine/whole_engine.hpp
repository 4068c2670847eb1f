// SPDX-License-Identifier: MIT
// The whole engine on 1 to 384 simulated cores: what a malloc and its free cost in coherence misses, in locks that change
// hands and in calls to the system, as the number of cores grows. It runs alloc::Core with the numbers that ship
// (NativeConfig), over CoherentAtomics and a page source that counts its calls.
//
//   const EngineCount count = count_engine({.workload = EngineWorkload::kOwn, .bytes = 64, .cores = 16});
//   count.per_pair(count.misses)
//
// Every block is stamped by the core that got it, and the stamp is checked before the free; at the end nothing may be in use
// and the engine's invariants hold. A violation is a std::logic_error.
// Limits: only accesses through the Atomics policy are counted. Plain data that a lock protects is not, so that each
// hand-over stands for the lines of that data, too. A call to the system costs nothing here, whatever the kernel does for
// it. One count at a time in a process, no threads.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cores.hpp"

namespace freehold::sim {

enum class EngineWorkload : std::uint8_t {
  kOwn,        // each core allocates four blocks and frees them
  kMany,       // the same with more blocks than its cache holds
  kNeighbour,  // each block is freed by the next core
  kProducer,   // every second core only allocates, the next one frees
  kChurn,      // a new thread after every 64 pairs
  kPurge,      // kMany, while one of the cores does nothing but give memory back to the system
};
inline constexpr std::array kEngineWorkloads{EngineWorkload::kOwn,      EngineWorkload::kMany,  EngineWorkload::kNeighbour,
                                             EngineWorkload::kProducer, EngineWorkload::kChurn, EngineWorkload::kPurge};
[[nodiscard]] std::string_view name_of(EngineWorkload workload) noexcept;

inline constexpr std::size_t kMaxEngineBytes = std::size_t{1} << 20;
inline constexpr unsigned kChurnThreadPairs = 64;  // pairs of a thread under kChurn

struct EngineOptions {
  EngineWorkload workload = EngineWorkload::kOwn;
  std::size_t bytes = 64;    // 1 … kMaxEngineBytes
  unsigned cores = 4;        // 1 … kMaxCores
  unsigned nodes = 1;        // memory nodes, 1 … cores; beyond 1, `served` and `far` are counted
  unsigned quantum = 1;      // accesses after which another core goes on, give or take
  unsigned pairs = 0;        // by each core that frees; 0: enough for the size
  unsigned seed = 1;         // of the turns
  bool note_places = false;  // fill EngineCount::places
};

// Misses by the place in the source and by what was accessed, while all cores were counted.
struct MissPlace {
  std::string source;  // "lock.hpp:58"
  std::string object;  // "engine+1856 (a lock)", "tables", "spans", "records"
  double misses_per_pair = 0;
  std::uint64_t lines = 0;  // that these misses were on
};

struct EngineCount {
  std::uint64_t pairs = 0;
  std::uint64_t accesses = 0;
  std::uint64_t misses = 0;       // lines that came from another core, or copies of others that went
  std::uint64_t locks = 0;        // taken
  std::uint64_t hand_overs = 0;   // locks among these that came from another core
  std::uint64_t waits = 0;        // sleeps for a lock
  std::uint64_t calls = 0;        // to the system
  std::uint64_t served = 0;       // lines that came, the first one of each block included
  std::uint64_t far = 0;          // those that another node served
  std::vector<MissPlace> places;  // most misses first

  [[nodiscard]] double per_pair(std::uint64_t what) const noexcept {
    return pairs == 0 ? 0.0 : static_cast<double>(what) / static_cast<double>(pairs);
  }
};

// Errors: std::invalid_argument; std::runtime_error where the machine has too little address space; std::logic_error where
// the engine does wrong.
[[nodiscard]] EngineCount count_engine(const EngineOptions& options);

}  // namespace freehold::sim
