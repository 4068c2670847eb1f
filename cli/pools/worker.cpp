#include "cli/pools/worker.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <utility>

#include "cli/pools/contenders.hpp"

namespace freehold::cli::pools {
namespace {

// Getting a pool ready takes longer than the test itself, and a thread looks at the clock only between blocks of operations.
std::chrono::seconds limit_of(const Job& job) { return std::chrono::seconds(60 + 50 * job.milliseconds / 1000); }

Measured judge(const std::string& bytes) {
  Report report;
  if (bytes.size() != sizeof report) return NoReport{"an unreadable report"};
  std::memcpy(&report, bytes.data(), sizeof report);
  if (report.magic != Report::kMagic) return NoReport{"an unreadable report"};
  if (report.crew.correct != 1) return NoReport{"two threads held the same slot"};
  return report;
}

}  // namespace

int worker_main(const std::vector<std::string>& arguments) try {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody measures on when the one who asked is gone
  const Job job = job_of(arguments);
  const Contender* const contender = find_contender(job.pool);
  if (contender == nullptr) throw std::runtime_error("no such pool");
  const Report report = contender->run(job);
  // The slots that are still held are given back with the process.
  ::_exit(write_report(&report, sizeof report) ? 0 : 1);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}

Measured measure(const Job& job, Interrupts& interrupts) {
  std::vector<std::string> words = words_of(job);
  words.insert(words.begin(), kWorkerCommand);
  WorkerEnd end = run_worker(std::move(words), "", limit_of(job), interrupts);
  if (const auto* bytes = std::get_if<std::string>(&end)) return judge(*bytes);
  if (auto* none = std::get_if<NoReport>(&end)) return std::move(*none);
  return Interrupted{};
}

}  // namespace freehold::cli::pools
