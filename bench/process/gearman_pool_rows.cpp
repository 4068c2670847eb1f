// SPDX-License-Identifier: MIT
// gearman_pool_rows [SECONDS]: empty tasks of 1 KiB in and out, 4 workers, 8 client threads; over one gearmand on loopback
// and through the shared-memory table, alternately, medians of 5. Rows as JSON, one a line.
#include "bench/process/pool_rows.hpp"
#include "freehold/process_gearman.hpp"
#include "tests/support/gearmand.hpp"

int main(int argc, char** argv) {
  using namespace freehold;
  using namespace freehold::bench;
  constexpr unsigned kRounds = 5, kCalls = 2000;
  const double seconds = argc > 1 ? std::atof(argv[1]) : 1;
  if (test::JobServer::program().empty()) {
    std::fprintf(stderr, "gearman_pool_rows: gearmand is not installed\n");
    return 1;
  }
  const test::JobServer server(5);
  const test::ChildProcess machine(
      {FREEHOLD_GEARMAN_WORKER, "-n", "4", "-w", FREEHOLD_WORKER_PROGRAM, "-s", server.address(), FREEHOLD_ECHO});
  ProcessPoolOptions how;
  how.component = FREEHOLD_ECHO;
  how.worker_program = FREEHOLD_WORKER_PROGRAM;
  how.max_workers = how.min_workers = 4;
  ProcessPool table(how);
  GearmanPoolOptions over;
  over.servers = {server.address()};
  GearmanPool gearman(over);
  must_be_whole(table.call(std::string(kBytes, 'x')));
  must_be_whole(gearman.call(std::string(kBytes, 'x')));
  std::vector<double> by_table, by_gearman;
  const auto row = [&](const char* name, unsigned under_way) {
    std::printf(R"({"row": "%s", "under_way": %u, "table": %.1f, "gearman": %.1f})"
                "\n",
                name, under_way, median(by_table), median(by_gearman));
    by_table.clear(), by_gearman.clear();
  };
  for (unsigned i = 0; i < kRounds; ++i)
    by_table.push_back(round_trip(table, kCalls)), by_gearman.push_back(round_trip(gearman, kCalls));
  row("round trip, microseconds", 1);
  for (const unsigned under_way : {1u, 8u}) {
    for (unsigned i = 0; i < kRounds; ++i) {
      by_table.push_back(throughput(table, under_way, seconds));
      by_gearman.push_back(throughput(gearman, under_way, seconds));
    }
    row("tasks per second", under_way);
  }
  return 0;
}
