// SPDX-License-Identifier: MIT
#include "cli/workers/job_log.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "cli/support/failure.hpp"

namespace freehold::cli::workers {
namespace {
constexpr const char* kHead = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand";
}

JobLog::JobLog(const std::string& path, bool resume) : path_(path) {
  if (path.empty()) return;
  bool has_head = false;
  std::uintmax_t whole = 0;  // bytes of whole lines
  if (std::ifstream former(path); resume && former) {
    for (std::string line; std::getline(former, line); has_head = true) {
      if (!has_head && line != kHead)
        throw Failure(kExitRefused, fmt::format("--joblog: {} is no job log, so --resume cannot go on", printable(path)));
      if (former.eof()) break;
      whole += line.size() + 1;
      if (has_head) ended_.insert(std::strtoull(line.c_str(), nullptr, 10));
    }
    // A line without an end does not count, and must not become the beginning of another one.
    std::error_code none;
    std::filesystem::resize_file(path, whole, none);
  }
  file_ = std::fopen(path.c_str(), resume ? "ae" : "we");
  if (file_ == nullptr || (!has_head && std::fprintf(file_, "%s\n", kHead) < 0) || std::fflush(file_) != 0)
    throw Failure(kExitRefused, fmt::format("--joblog: cannot write {}: {}", printable(path), error_text(errno)));
}
JobLog::~JobLog() {
  if (file_ != nullptr) std::fclose(file_);
}

void JobLog::add(const JobRecord& job) {
  if (file_ == nullptr) return;
  fmt::print(file_, "{}\t:\t{:.3f}\t{:10.3f}\t{}\t{}\t{}\t{}\t{}\n", job.number, job.begin, job.runtime, job.sent,
             job.received, job.exit_value, job.signal, job.command);
  if (std::fflush(file_) != 0)
    throw Failure(kExitRefused, fmt::format("--joblog: cannot write {}: {}", printable(path_), error_text(errno)));
}

}  // namespace freehold::cli::workers
