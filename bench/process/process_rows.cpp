// SPDX-License-Identifier: MIT
// process_rows [SECONDS]: empty tasks of 1 KiB in and out, 4 workers. Rows as JSON, one a line:
//   throughput   8 client threads that call and wait, and 8 that keep 16 futures each
//   round trip   one client thread, beside a bare futex ping-pong between two processes; both alternately, medians
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/process/pool_rows.hpp"
#include "freehold/process.hpp"
#include "freehold/sync/atomics.hpp"

namespace {

using namespace freehold;
using namespace freehold::bench;

constexpr unsigned kWorkers = 4;

ProcessPoolOptions options() {
  ProcessPoolOptions how;
  how.component = FREEHOLD_ECHO;
  how.worker_program = FREEHOLD_WORKER_PROGRAM;
  how.max_workers = how.min_workers = kWorkers;
  how.max_input_bytes = how.max_output_bytes = kBytes;
  return how;
}

// Two processes that wake each other by two futexes: there and back.
double ping_pong(unsigned rounds) {
  using A = sync::NativeAtomics;
  auto* const words = static_cast<std::atomic<std::uint32_t>*>(
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  auto& ping = words[0];
  auto& pong = words[64];
  const auto await = [](std::atomic<std::uint32_t>& word, std::uint32_t value) {
    for (std::uint32_t seen = 0; (seen = word.load(std::memory_order_acquire)) != value;) A::wait_shared(word, seen);
  };
  const auto tell = [](std::atomic<std::uint32_t>& word, std::uint32_t value) {
    word.store(value, std::memory_order_release);
    A::notify_one_shared(word);
  };
  const pid_t child = ::fork();
  if (child == 0) {
    for (std::uint32_t i = 1; i <= rounds; ++i) await(ping, i), tell(pong, i);
    ::_exit(0);
  }
  const auto begin = Clock::now();
  for (std::uint32_t i = 1; i <= rounds; ++i) tell(ping, i), await(pong, i);
  const double each = std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / rounds;
  ::waitpid(child, nullptr, 0);
  ::munmap(words, 4096);
  return each;
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 2;
  std::vector<double> bare, tasks;
  for (int i = 0; i < 7; ++i) bare.push_back(ping_pong(10'000));  // before there are threads
  ProcessPool pool(options());
  if (!pool.ok() || !pool.call("up").ok()) {
    std::fprintf(stderr, "process_rows: %s\n", pool.error().c_str());
    return 1;
  }
  for (int i = 0; i < 7; ++i) tasks.push_back(round_trip(pool, 10'000)), bare.push_back(ping_pong(10'000));
  std::printf(R"({"row": "round trip", "microseconds": %.2f, "ping_pong_microseconds": %.2f, "ratio": %.2f})"
              "\n",
              median(tasks), median(bare), median(tasks) / median(bare));
  for (const unsigned under_way : {1u, 16u}) {
    const double rate = throughput(pool, under_way, seconds);
    std::printf(R"({"row": "throughput", "clients": %u, "workers": %u, "under_way": %u, "tasks_per_second": %.0f})"
                "\n",
                kClients, kWorkers, under_way, rate);
  }
  std::fprintf(stderr, "%s\n", text(pool.stats()).c_str());
  return 0;
}
