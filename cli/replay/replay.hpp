// A trace done again, by as many threads, through one memory.
//
// Each thread does its own steps in their order. Blocks that another thread frees go over in batches: what a thread hands
// over lies in one array, in the order of allocation, and the number of those that are ready is published 64 at a time, and
// whenever the thread has to wait itself. Nobody waits for room, so threads wait only along the trace's order in time, which
// has no circle. Every block is stamped when it begins and looked at when it ends.
#pragma once
#include <cstdint>
#include <vector>

#include "cli/replay/memories.hpp"
#include "freehold/doctor/site_trace.hpp"

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
    std::uint32_t first_place = 0;  // of what it hands over
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

// Slots that are enough for a pool however far threads get ahead of each other, within reason.
[[nodiscard]] std::size_t slots_for(const Program& program);

struct Outcome {
  std::uint64_t elapsed_ns = 0;
  std::uint64_t resident_bytes = 0;  // that the process grew by
  bool complete = false;             // false: no slot was free for long, although enough had been given back
  bool correct = false;              // every block had its stamp at its end
};

// In a process of its own, so that no memory inherits anything. Pre: this process has one thread. Throws std::exception if
// it cannot be started or dies.
[[nodiscard]] Outcome replay(const Program& program, const Maker& maker);

}  // namespace freehold::cli::replay
