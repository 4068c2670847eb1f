// SPDX-License-Identifier: MIT
// One program for all macro rows: `malloc_rows NAME [SCALE]` runs one row and prints one line of JSON; `malloc_rows --list`
// names them. It is linked dynamically and knows no allocator: the driver preloads one and measures memory from outside.
#include "bench/macro/rows.hpp"

namespace {

using freehold::bench::Row;

int run(const Row& row, double scale) {
  const freehold::bench::Outcome outcome = row.run(scale);
  if (outcome.check == 0) freehold::bench::give_up("the work was not done");
  std::printf("{\"row\": \"%s\", \"operations\": %llu, \"seconds\": %.9f, \"check\": %llu}\n", row.name,
              static_cast<unsigned long long>(outcome.operations), outcome.seconds,
              static_cast<unsigned long long>(outcome.check));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace freehold::bench;
  return row_main<Row>("malloc_rows",
                       {pair_rows(), ring_rows(), list_rows(), churn_rows(), large_rows(), program_like_rows()}, run, argc,
                       argv);
}
