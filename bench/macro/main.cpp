// SPDX-License-Identifier: MIT
// One program for all macro rows: `malloc_rows NAME [SCALE]` runs one row and prints one line of JSON; `malloc_rows --list`
// names them. It is linked dynamically and knows no allocator: the driver preloads one and measures memory from outside.
#include <array>
#include <cstring>

#include "bench/macro/rows.hpp"

namespace {

using freehold::bench::Outcome;
using freehold::bench::Row;
using freehold::bench::Rows;

std::array<Rows, 6> all_rows() {
  using namespace freehold::bench;
  return {pair_rows(), ring_rows(), list_rows(), churn_rows(), large_rows(), program_like_rows()};
}

int list() {
  for (const Rows& rows : all_rows())
    for (const Row& row : rows) std::printf("%s\t%s\n", row.name, row.summary);
  return 0;
}

int run(const Row& row, double scale) {
  const Outcome outcome = row.run(scale);
  if (outcome.check == 0) freehold::bench::give_up("the work was not done");
  std::printf("{\"row\": \"%s\", \"operations\": %llu, \"seconds\": %.9f, \"check\": %llu}\n", row.name,
              static_cast<unsigned long long>(outcome.operations), outcome.seconds,
              static_cast<unsigned long long>(outcome.check));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--list") == 0) return list();
  const double scale = argc == 3 ? std::atof(argv[2]) : 1.0;
  if ((argc == 2 || argc == 3) && scale > 0)
    for (const Rows& rows : all_rows())
      for (const Row& row : rows)
        if (std::strcmp(row.name, argv[1]) == 0) return run(row, scale);
  std::fprintf(stderr, "usage: malloc_rows NAME [SCALE] | --list\n");
  return 2;
}
