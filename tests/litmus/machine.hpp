// SPDX-License-Identifier: MIT
// Litmus programs on the simulated machine, and programs at random.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <set>
#include <string>

#include "sim/explore.hpp"
#include "sim/sim_atomics.hpp"
#include "tests/litmus/program.hpp"

namespace freehold::litmus {

struct Memory {
  std::array<sim::SimAtomics::atomic<std::uint32_t>, kLocations> at;
  Observed observed;
};

inline void execute(const Instruction& i, unsigned number, Memory& memory) {
  sim::SimAtomics::atomic<std::uint32_t>& at = memory.at[i.location];
  std::uint32_t read = i.expected;
  switch (i.kind) {
    case Kind::kFence: sim::SimAtomics::fence(i.order); return;
    case Kind::kStore: at.store(i.operand, i.order); return;
    case Kind::kLoad: read = at.load(i.order); break;
    case Kind::kExchange: read = at.exchange(i.operand, i.order); break;
    case Kind::kAdd: read = at.fetch_add(i.operand, i.order); break;
    case Kind::kCas:
      memory.observed.swapped[number] = at.compare_exchange_strong(read, i.operand, i.order, i.failure);
      break;
    case Kind::kWeakCas:
      memory.observed.swapped[number] = at.compare_exchange_weak(read, i.operand, i.order, i.failure);
      break;
  }
  memory.observed.read[number] = static_cast<std::uint8_t>(read);
}

struct Shown {
  std::set<std::string> outcomes;
  sim::Result result;
};

// Returns what the machine shows of the program; by default all of it: no bound is reached.
inline Shown shown_by_machine(const Program& program,
                              const sim::Options& options = {
                                  .name = "litmus", .preemptions = 64, .stale = 64, .print = false}) {
  Shown shown;
  shown.result = sim::explore(options, [&](sim::Execution& run) {
    Memory memory{};
    unsigned first = 0;
    for (const Thread& thread : program.threads) {
      run.spawn([&memory, &thread, first] {
        for (unsigned i = 0; i < thread.size(); ++i) execute(thread[i], first + i, memory);
      });
      first += static_cast<unsigned>(thread.size());
    }
    run.check([&] {
      for (unsigned i = 0; i < kLocations; ++i)
        memory.observed.last[i] = static_cast<std::uint8_t>(memory.at[i].load(std::memory_order::relaxed));
      shown.outcomes.insert(outcome(program, memory.observed));
    });
  });
  return shown;
}

class RandomPrograms {
 public:
  explicit RandomPrograms(std::uint64_t seed) : random_(seed) {}

  // At most so large that the machine has it done in milliseconds.
  Program next() {
    for (;;) {
      Program program;
      const unsigned threads = 2 + below(3), locations = 1 + below(kLocations);
      for (unsigned i = 0; i < threads; ++i) {
        Thread& thread = program.threads.emplace_back();
        for (unsigned left = 1 + below(4); left > 0; --left) thread.push_back(instruction(locations));
      }
      if (program.instructions() <= 6) return program;
    }
  }

 private:
  unsigned below(unsigned n) { return static_cast<unsigned>(random_() % n); }
  std::memory_order one_of(std::initializer_list<std::memory_order> orders) {
    return orders.begin()[below(static_cast<unsigned>(orders.size()))];
  }

  Instruction instruction(unsigned locations) {
    using Order = std::memory_order;
    constexpr Kind kKinds[] = {Kind::kLoad,     Kind::kLoad, Kind::kLoad, Kind::kStore,   Kind::kStore,
                               Kind::kExchange, Kind::kAdd,  Kind::kCas,  Kind::kWeakCas, Kind::kFence};
    Instruction i;
    i.kind = kKinds[below(std::size(kKinds))];
    i.location = static_cast<std::uint8_t>(i.kind == Kind::kFence ? 0 : below(locations));
    if (i.may_write()) i.operand = static_cast<std::uint8_t>(1 + below(3));
    if (i.compares()) i.expected = static_cast<std::uint8_t>(below(3));
    switch (i.kind) {
      case Kind::kLoad: i.order = one_of({Order::relaxed, Order::acquire, Order::seq_cst}); break;
      case Kind::kStore: i.order = one_of({Order::relaxed, Order::release, Order::seq_cst}); break;
      case Kind::kFence: i.order = one_of({Order::acquire, Order::release, Order::acq_rel, Order::seq_cst}); break;
      default: i.order = one_of({Order::relaxed, Order::acquire, Order::release, Order::acq_rel, Order::seq_cst}); break;
    }
    if (i.compares()) i.failure = one_of({Order::relaxed, Order::acquire, Order::seq_cst});
    return i;
  }

  std::mt19937_64 random_;
};

}  // namespace freehold::litmus
