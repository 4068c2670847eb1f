#include "cli/timers/worker.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <utility>

#include "cli/support/library.hpp"
#include "cli/timers/contenders.hpp"

namespace freehold::cli::timers {
namespace {

// Threads of the load take CPU time from the users, which end by theirs; and millions of timers are there before it begins.
std::chrono::seconds limit_of(const Job& job) {
  return std::chrono::seconds(60 + job.timers / 50'000 +
                              std::uint64_t{job.milliseconds} * (job.users + job.background) / 1000);
}

Measured judge(const std::string& bytes, const std::string& library) {
  Report report;
  if (bytes.size() != sizeof report) return NoReport{"an unreadable report"};
  std::memcpy(&report, bytes.data(), sizeof report);
  if (report.magic != Report::kMagic) return NoReport{"an unreadable report"};
  if (!library.empty()) {
    if (std::string why = wrong_malloc(library, report.malloc_library); !why.empty()) return NoReport{std::move(why)};
  }
  if (report.crew.correct != 1) return NoReport{"what fired is not what was set"};
  return report;
}

}  // namespace

int worker_main(const std::vector<std::string>& arguments) try {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody measures on when the one who asked is gone
  const Job job = job_of(arguments);
  const Contender* const contender = find_contender(job.structure);
  if (contender == nullptr || !runs(*contender, job.test)) throw std::runtime_error("no such structure");
  Report report = (job.test == Trial::kShared ? contender->run_shared : contender->run)(job);
  note_malloc_library(report.malloc_library);
  ::_exit(write_report(&report, sizeof report) ? 0 : 1);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}

Measured measure(const Job& job, const std::string& library, Interrupts& interrupts) {
  std::vector<std::string> words = words_of(job);
  words.insert(words.begin(), kWorkerCommand);
  WorkerEnd end = run_worker(std::move(words), library, limit_of(job), interrupts);
  if (const auto* bytes = std::get_if<std::string>(&end)) return judge(*bytes, library);
  if (auto* none = std::get_if<NoReport>(&end)) return std::move(*none);
  return Interrupted{};
}

}  // namespace freehold::cli::timers
