// SPDX-License-Identifier: MIT
#include "lab/timers/plan.hpp"

#include <fmt/format.h>

#include "lab/experiment/command.hpp"

namespace freehold::cli::timers {

std::string text_of(const Row& row) {
  const std::string users =
      row.test == Trial::kShared ? fmt::format(", {} user{}", row.users, row.users == 1 ? "" : "s") : "";
  return fmt::format("{}, {}{}", name_of(row.test), row.timers, users);
}

std::vector<const Candidate*> parse_structures(const std::string& text) {
  return parse_candidates(candidates(), "--timers", "timers", text);
}

std::vector<Row> rows_of(const Settings& settings) {
  std::vector<Row> rows;
  for (const Trial test : settings.tests) {
    switch (test) {
      case Trial::kFreshRandom:
      case Trial::kFreshAscending:
      case Trial::kRandom:
      case Trial::kAscending: rows.push_back({test, settings.count, 1}); break;
      case Trial::kCancel: rows.push_back({test, settings.cancelled, 1}); break;
      case Trial::kRearm:
        for (const std::uint32_t timers : settings.live) rows.push_back({test, timers, 1});
        break;
      case Trial::kShared:
        for (const std::uint32_t users : settings.users) rows.push_back({test, settings.shared, users});
        break;
    }
  }
  return rows;
}

std::vector<Cell> cells_of(const Settings& settings) {
  std::vector<Cell> cells;
  for (const Row& row : rows_of(settings)) {
    for (const Load load : settings.loads) {
      for (std::size_t i = 0; i < settings.structures.size(); ++i) {
        if (runs(*settings.structures[i], row.test)) cells.push_back({row, load, i});
      }
    }
  }
  return cells;
}

Job job_of(const Settings& settings, const Cell& cell) {
  return {.structure = settings.structures[cell.structure]->name,
          .test = cell.row.test,
          .load = cell.load,
          .timers = cell.row.timers,
          .users = cell.row.users,
          .background = cell.load == Load::kAlone ? 0 : settings.background,
          .milliseconds = settings.milliseconds};
}

}  // namespace freehold::cli::timers
