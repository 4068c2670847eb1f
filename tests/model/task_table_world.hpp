// SPDX-License-Identifier: MIT
// A task table on the simulated machine, in zeroed memory, and its supervisor's side.
#pragma once
#include <cstdlib>
#include <cstring>
#include <memory>

#include "freehold/process/table/table_supervision.hpp"
#include "sim/explore.hpp"
#include "sim/sim_atomics.hpp"
#include "tests/model/expect_ok.hpp"

namespace freehold::process {

template <class A = sim::SimAtomics, class Orders = TaskTableOrders>
struct World {
  using Table = TaskTable<A, Orders>;
  struct Free {
    void operator()(std::byte* memory) const noexcept { std::free(memory); }
  };

  explicit World(const TableShape& shape = {.entries = 1, .workers = 2, .clients = 1, .max_input = 64, .max_output = 64})
      : memory(make(shape)), table(memory.get()), supervision(table) {}
  static std::byte* make(const TableShape& shape) {
    const std::uint64_t bytes = Table::bytes(shape);
    auto* const memory = static_cast<std::byte*>(std::aligned_alloc(4096, base::align_up(bytes + 1, 4096)));
    std::memset(memory, 0, bytes);
    Table::create(memory, shape);
    return memory;
  }
  // The first task of client 0, of one byte.
  Ticket submitted(const TaskParameters& parameters = {}) {
    const Ticket ticket = *table.try_acquire(0);
    table.submit(ticket, 0, 1, parameters);
    return ticket;
  }
  void wait_and_take(Ticket ticket) {
    while (!table.entries().take_result(ticket)) table.entries().wait(ticket);
  }
  [[nodiscard]] std::uint32_t count(TaskState state) const { return table.entries().count(state); }

  std::unique_ptr<std::byte, Free> memory;
  Table table;
  TableSupervision<A, Orders> supervision;
};

inline constexpr TableShape kOneOfEach{.entries = 1, .workers = 1, .clients = 1, .max_input = 64, .max_output = 64};
inline constexpr Failure kKilledBy9{FailureKind::kSignal, 9};

}  // namespace freehold::process
