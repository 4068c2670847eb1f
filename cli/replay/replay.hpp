// SPDX-License-Identifier: MIT
// Repeats a trace with as many threads through one allocator, and times it.
//
// Each thread does its own steps in their order. A thread keeps the blocks that another thread will free in one array, in
// the order of allocation. It publishes the number of ready ones every 64 blocks, and before it waits itself. No thread
// waits for room, so threads wait only along the trace's order in time, which has no cycle: there is no deadlock. A block
// gets a stamp when it is allocated; the stamp is checked when the block is freed.
#pragma once
#include <cstdint>
#include <vector>

#include "cli/replay/memories.hpp"
#include "freehold/doctor/analysis/site_trace.hpp"

namespace freehold::cli::replay {

// The steps of each thread, ready to be run.
struct Program {
  struct Step {
    std::uint32_t place = 0;      // where the block's pointer is
    std::uint16_t allocator = 0;  // the thread that has it from the memory
    bool is_end = false;
    bool is_handed_over = false;
  };
  struct Thread {
    std::vector<Step> set_up, steps;
    std::uint32_t first_place = 0;  // of the blocks that it hands over
  };
  std::vector<Thread> threads;
  std::uint32_t places = 0;
  std::uint64_t ends = 0;    // behind the set-up
  std::uint64_t begins = 0;  // behind the set-up
  std::uint64_t bytes = 0;   // of a block
  std::uint32_t peak_live = 0;
};
// Pre: the trace has no fault.
[[nodiscard]] Program program_of(const freehold::doctor::SiteTrace& trace);

// Enough slots for a pool, even if some threads get far ahead of the others.
[[nodiscard]] std::size_t slots_for(const Program& program);

struct Outcome {
  std::uint64_t elapsed_ns = 0;
  std::uint64_t resident_bytes = 0;  // that the process grew by
  bool complete = false;             // false: no slot was free for a long time, although enough had been returned
  bool correct = false;              // every block had its stamp at its end
};

// Runs in a process of its own, so that no allocator inherits memory. Pre: this process has one thread. Throws
// std::exception if the process cannot be started or dies.
[[nodiscard]] Outcome replay(const Program& program, const Maker& maker);

}  // namespace freehold::cli::replay
