#include "cli/scale/measure.hpp"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <utility>

#include "cli/scale/worker.hpp"
#include "cli/support/failure.hpp"

namespace freehold::cli::scale {
namespace {

bool is_libc(const std::string& file) { return std::filesystem::path(file).filename().string().starts_with("libc.so"); }

// Whether malloc came from where it should: empty, or the complaint.
std::string wrong_malloc(const std::string& library, const std::string& actual) {
  std::error_code error;
  const std::string from = std::filesystem::weakly_canonical(actual, error).string();
  if (library.empty() ? is_libc(from) : from == library) return {};
  if (library.empty()) return fmt::format("malloc is not the system's: it comes from {}", printable(from));
  return fmt::format("{} does not replace malloc, which comes from {}", printable(library), printable(from));
}

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
