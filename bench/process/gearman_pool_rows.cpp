// SPDX-License-Identifier: MIT
// gearman_pool_rows [SECONDS]: empty tasks of 1 KiB in and out, 4 workers, 8 client threads; over one gearmand on loopback
// and through the shared-memory table, alternately, medians of 5. Rows as JSON, one a line.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "freehold/process_gearman.hpp"
#include "tests/support/gearmand.hpp"

namespace {

using namespace freehold;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kBytes = 1024;
constexpr unsigned kClients = 8, kRounds = 5;

template <class Result>
void check(const Result& result) {
  if (result.bytes().size() == kBytes) return;
  std::fprintf(stderr, "gearman_pool_rows: a task failed\n");
  std::_Exit(1);
}

// Tasks per second, by clients that have so many under way.
template <class Pool>
double throughput(Pool& pool, unsigned under_way, double seconds) {
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> total{0};
  std::vector<std::thread> clients;
  const auto begin = Clock::now();
  for (unsigned c = 0; c < kClients; ++c) {
    clients.emplace_back([&] {
      const std::string input(kBytes, 'x');
      std::vector<decltype(pool.submit(input))> futures(under_way);
      std::uint64_t done = 0;
      for (std::size_t i = 0; !stop.load(std::memory_order_relaxed); i = (i + 1) % under_way) {
        if (futures[i].valid()) check(futures[i].get()), ++done;
        futures[i] = pool.submit(input);
      }
      total += done;
    });
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop = true;
  for (std::thread& client : clients) client.join();
  return static_cast<double>(total.load()) / std::chrono::duration<double>(Clock::now() - begin).count();
}

template <class Pool>
double round_trip(Pool& pool) {
  constexpr unsigned kCalls = 2000;
  const std::string input(kBytes, 'x');
  const auto begin = Clock::now();
  for (unsigned i = 0; i < kCalls; ++i) check(pool.call(input));
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / kCalls;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
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
  check(table.call(std::string(kBytes, 'x')));
  check(gearman.call(std::string(kBytes, 'x')));
  std::vector<double> by_table, by_gearman;
  const auto row = [&](const char* name, unsigned under_way) {
    std::printf(R"({"row": "%s", "under_way": %u, "table": %.1f, "gearman": %.1f})"
                "\n",
                name, under_way, median(by_table), median(by_gearman));
    by_table.clear(), by_gearman.clear();
  };
  for (unsigned i = 0; i < kRounds; ++i) by_table.push_back(round_trip(table)), by_gearman.push_back(round_trip(gearman));
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
