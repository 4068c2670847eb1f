// A crew: N workers, threads or forked processes, that prepare, wait for each other, and do their shares at the same time.
// Only what lies between the start line and each worker's end is timed. The workers meet in shared memory, so that threads
// and processes are measured by the same code.
#pragma once
#include <pthread.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace freehold::cli {

// Workers are threads of one process, or processes of one thread; or threads that have everything done by the worker
// processes of a ProcessPool.
enum class Mode : std::uint8_t { kThreads, kProcesses, kPool };
inline constexpr std::array kModes{Mode::kThreads, Mode::kProcesses, Mode::kPool};
[[nodiscard]] std::string_view name_of(Mode mode);
[[nodiscard]] std::optional<Mode> mode_of(std::string_view name);

// What a crew leaves, as bytes that may go through a pipe.
struct CrewReport {
  std::uint64_t elapsed_ns = 0;      // from the first worker's start to the last one's end
  std::uint64_t cpu_ns = 0;          // user and system time of all workers
  std::uint64_t peak_rss_bytes = 0;  // of the process; for processes the sum over the workers
  std::uint64_t correct = 0;         // 1: every worker's checks held
};

// One worker's place in the crew. A body calls start() when prepared and finish() when its timed work is done.
class Lane {
 public:
  Lane(std::uint32_t index, pthread_barrier_t& line) : index_(index), line_(line) {}
  [[nodiscard]] std::uint32_t index() const noexcept { return index_; }
  void start() noexcept;  // waits for the whole crew
  void finish() noexcept;
  [[nodiscard]] std::uint64_t started_ns() const noexcept { return started_ns_; }
  [[nodiscard]] std::uint64_t finished_ns() const noexcept { return finished_ns_; }
  [[nodiscard]] std::uint64_t cpu_ns() const noexcept { return cpu_finished_ns_ - cpu_started_ns_; }

 private:
  std::uint32_t index_;
  pthread_barrier_t& line_;
  std::uint64_t started_ns_ = 0;
  std::uint64_t finished_ns_ = 0;
  std::uint64_t cpu_started_ns_ = 0;
  std::uint64_t cpu_finished_ns_ = 0;
};

// Returns whether the worker's checks held.
using Body = std::function<bool(Lane&)>;

// Runs `body` once per worker; of a pool, the clients' threads. Its processes are the caller's to start and to account for.
// Fills in the report's times, memory and correctness.
// Throws std::exception if a process cannot be started or dies. Where a crew of threads cannot be completed, those that
// stand at the start line already cannot be called back: the process ends with a line on standard error.
void run_crew(Mode mode, std::uint32_t workers, const Body& body, CrewReport& report);

}  // namespace freehold::cli
