// SPDX-License-Identifier: MIT
// Random legal calls from several threads under checked mode, beside a shadow map, and misuse that is planted in children of
// fork: every planted misuse must be reported with the right kind and address, and no legal call may be.
//
//   checked_fuzz LIBRARY [SECONDS]   rounds with fresh seeds, each a new process with other options
//   checked_fuzz LIBRARY --seed N    one round, again
//
// A round that fails prints its seed and its options. FREEHOLD_TEST_SEED is the first seed.
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/fuzz/checked/planted.hpp"
#include "tests/support/active_malloc.hpp"
#include "tests/support/process.hpp"
#include "tests/support/trace.hpp"

namespace freehold::fuzz {
namespace {

constexpr unsigned kThreads = 3;
constexpr int kSteps = 4000, kStepsForEachMisuse = 50, kStepsWithoutMisuse = 40'000;
constexpr unsigned kChildSeconds = 30;

// The standard error of a child of fork, and how it ended.
struct Ended {
  std::string text;
  int status = 0;
};

[[noreturn]] void be_child(const Plan& plan, int error) {
  ::alarm(kChildSeconds);
  ::dup2(error, STDERR_FILENO);
  plan.commit(plan);
  ::_exit(0);
}

Ended run_child(const Plan& plan) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail("no pipe", {});
  const pid_t child = ::fork();
  if (child == 0) be_child(plan, ends[1]);
  ::close(ends[1]);
  Ended ended;
  char buffer[4096];
  for (ssize_t n; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;) ended.text.append(buffer, static_cast<std::size_t>(n));
  ::close(ends[0]);
  ::waitpid(child, &ended.status, 0);
  return ended;
}

int run_round(std::uint64_t seed) {
  if (!test::freehold_answers()) return std::puts("Freehold's malloc does not answer"), 3;
  const Settings settings = Settings::of(seed);
  // Static: it holds no block of the malloc that it watches. Sampled blocks have no quarantine in common with the others.
  static Shadow shadow(!settings.check || settings.guard_rate != 0 ? 0 : settings.quarantine);
  static Mailbox mailbox;
  std::atomic<bool> stops{false};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      const auto worker = std::make_unique<Worker>(seed * 16 + i + 1, settings, shadow, mailbox);
      while (!stops.load(std::memory_order_relaxed)) worker->step();  // relaxed: nothing is published
      worker->drop_all();
    });
  const auto worker = std::make_unique<Worker>(seed * 16, settings, shadow, mailbox);
  int planted = 0;
  for (int i = 0; i < (settings.plants ? kSteps : kStepsWithoutMisuse); ++i) {
    worker->step();
    if (!settings.plants || i % kStepsForEachMisuse != 0) continue;
    const Plan plan = plan_misuse(*worker, settings);
    const Ended ended = run_child(plan);
    if (const std::string wrong = judge(plan, settings, ended.text, ended.status); !wrong.empty()) {
      std::printf("planted misuse %d: %s\n%s\nreport:\n%s", planted, wrong.c_str(), plan.describe().c_str(),
                  ended.text.c_str());
      std::fflush(stdout);
      ::_exit(1);
    }
    if (plan.second.address != nullptr) free_rightly(plan.block, plan.sized);
    ++planted;
  }
  stops.store(true, std::memory_order_relaxed);  // relaxed: join() orders the rest
  for (std::thread& thread : threads) thread.join();
  worker->drop_all();
  std::printf("planted %d\n", planted);
  return 0;
}

// False: the round failed, and has been shown.
bool start_round(const char* self, const char* library, std::uint64_t seed, double& planted) {
  test::Command command{{self, "--round", std::to_string(seed)}};
  command.environment = Settings::of(seed).environment();
  std::string shown;
  for (const auto& [name, value] : command.environment) shown += name + "=" + value + " ";
  command.environment.emplace_back("LD_PRELOAD", library);
  command.timeout_seconds = 120;
  const test::Outcome outcome = test::run(command);
  planted += outcome.ok() ? outcome.figures()["planted"] : 0;
  if (outcome.ok() && outcome.err.empty()) return true;
  std::printf("checked_fuzz: round %llu failed\n%s\n%s\nagain: %s %s --seed %llu\n", static_cast<unsigned long long>(seed),
              shown.c_str(), outcome.describe().c_str(), self, library, static_cast<unsigned long long>(seed));
  return false;
}

int run_rounds(const char* self, const char* library, double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  const std::uint64_t first = test::number_from_environment("FREEHOLD_TEST_SEED", 1);
  std::uint64_t seed = first;
  double planted = 0;
  do
    if (!start_round(self, library, seed++, planted)) return 1;
  while (std::chrono::steady_clock::now() < end);
  std::printf("checked_fuzz: %llu rounds, %.0f planted misuses, each reported\n",
              static_cast<unsigned long long>(seed - first), planted);
  return 0;
}

}  // namespace
}  // namespace freehold::fuzz

int main(int argc, char** argv) {
  using namespace freehold::fuzz;
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 2 && words[0] == "--round") return run_round(std::stoull(words[1]));
  double planted = 0;
  if (words.size() == 3 && words[1] == "--seed")
    return start_round(argv[0], argv[1], std::stoull(words[2]), planted) ? 0 : 1;
  if (words.empty() || words.size() > 2 || words[0].empty() || words[0][0] == '-') {
    std::fputs("usage: checked_fuzz LIBRARY [SECONDS | --seed N]\n", stderr);
    return 2;
  }
  return run_rounds(argv[0], argv[1], words.size() == 2 ? std::stod(words[1]) : 20);
}
