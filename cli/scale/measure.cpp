#include "cli/scale/measure.hpp"

#include <cstring>
#include <utility>

#include "cli/scale/worker.hpp"
#include "cli/support/library.hpp"

namespace freehold::cli::scale {
namespace {

Measured judge(const std::string& bytes, const std::string& library) {
  Report report;
  if (bytes.size() != sizeof report) return NoReport{"an unreadable report"};
  std::memcpy(&report, bytes.data(), sizeof report);
  if (report.magic != Report::kMagic) return NoReport{"an unreadable report"};
  if (std::string why = wrong_malloc(library, report.malloc_library); !why.empty()) return NoReport{std::move(why)};
  if (report.crew.correct != 1) return NoReport{"the workers computed wrong results: their memory was damaged"};
  return report;
}

}  // namespace

Measured measure(const Job& job, const std::string& library, std::chrono::seconds limit, Interrupts& interrupts) {
  WorkerEnd end = run_worker(worker_arguments(job), library, limit, interrupts);
  if (const auto* bytes = std::get_if<std::string>(&end)) return judge(*bytes, library);
  if (auto* none = std::get_if<NoReport>(&end)) return std::move(*none);
  return Interrupted{};
}

}  // namespace freehold::cli::scale
