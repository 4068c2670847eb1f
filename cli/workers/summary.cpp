// SPDX-License-Identifier: MIT
#include "cli/workers/run.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tools/support/failure.hpp"

namespace freehold::cli::workers {
namespace {
using nlohmann::ordered_json;

std::string time_text(std::uint64_t nanoseconds) {
  const auto value = static_cast<double>(nanoseconds);
  if (nanoseconds < 1'000'000) return fmt::format("{:.0f} us", value / 1e3);
  if (nanoseconds < 1'000'000'000) return fmt::format("{:.1f} ms", value / 1e6);
  return fmt::format("{:.1f} s", value / 1e9);
}

double rate(const Results& results) {
  return results.seconds > 0 ? static_cast<double>(results.done + results.failed) / results.seconds : 0;
}

ordered_json text_or_null(const std::string& text) { return text.empty() ? ordered_json(nullptr) : ordered_json(text); }

// Reasons that occurred, in the order of the enumeration.
template <class Visit>
void for_each_end(const Results& results, Visit visit) {
  for (std::size_t i = 0; i < process::kExitReasons; ++i)
    if (const std::uint64_t count = results.pool.workers.ended[i]; count > 0)
      visit(process::text(static_cast<process::ExitReason>(i)), count);
}

}  // namespace

std::string summary_of(const Results& results) {
  const process::ClientStats& tasks = results.pool.tasks;
  const process::SupervisorStats& workers = results.pool.workers;
  std::string text;
  text += fmt::format("freehold workers: {} done, {} failed", results.done, results.failed);
  if (results.unanswered > 0) text += fmt::format(", {} unanswered", results.unanswered);
  text += fmt::format(" in {:.2f} s: {:.0f} a second", results.seconds, rate(results));
  if (tasks.delivered > 0)
    text += fmt::format("; from submission to result 50% {}, 90% {}, 99% {}", time_text(tasks.median), time_text(tasks.p90),
                        time_text(tasks.p99));
  text += fmt::format("; {} workers started", workers.started);
  std::string separator = ", ended: ";
  for_each_end(results, [&](const char* why, std::uint64_t count) {
    text += fmt::format("{}{} {}", separator, count, why);
    separator = ", ";
  });
  if (workers.handed_on > 0) text += fmt::format("; {} tasks of dead workers handed on", workers.handed_on);
  if (results.signal != 0) text += fmt::format("; interrupted");
  return text + '\n';
}

ordered_json results_json(const Settings& settings, const Results& results) {
  const ProcessPoolOptions& pool = settings.pool;
  ordered_json failures = ordered_json::array();
  for (const TaskFailure& failure : results.failures) failures.push_back({{"task", failure.task}, {"why", failure.why}});
  ordered_json ended = ordered_json::object();
  for_each_end(results, [&](const char* why, std::uint64_t count) { ended[why] = count; });
  const auto milliseconds = [](std::optional<process::Nanoseconds> time) {
    return time ? ordered_json(time->count() / 1'000'000) : ordered_json(nullptr);
  };
  const auto limit = [](std::optional<std::uint64_t> most) { return most ? ordered_json(*most) : ordered_json(nullptr); };
  return {
      {"format", "freehold-workers"},
      {"version", 1},
      {"complete", results.complete()},
      {"seconds", results.seconds},
      {"settings",
       {{"component", text_or_null(pool.component)},
        {"command", pool.command},
        {"workers", pool.max_workers},
        {"max_open_tasks", pool.max_open_tasks},
        {"run_timeout_ms", milliseconds(pool.run_timeout)},
        {"max_attempts", pool.max_attempts},
        {"idle_timeout_ms", milliseconds(pool.idle_timeout)},
        {"max_tasks", limit(pool.max_tasks)},
        {"max_rss_bytes", limit(pool.max_rss_bytes)},
        {"max_age_ms", milliseconds(pool.max_age)},
        {"kill_rss_bytes", limit(pool.kill_rss_bytes)},
        {"max_input_bytes", pool.max_input_bytes},
        {"max_output_bytes", pool.max_output_bytes}}},
      {"tasks",
       {{"done", results.done},
        {"failed", results.failed},
        {"unanswered", results.unanswered},
        {"per_second", rate(results)}}},
      {"latency_ns",
       {{"median", results.pool.tasks.median}, {"p90", results.pool.tasks.p90}, {"p99", results.pool.tasks.p99}}},
      {"workers",
       {{"started", results.pool.workers.started},
        {"handed_on", results.pool.workers.handed_on},
        {"ended", std::move(ended)}}},
      {"failures", std::move(failures)},
      {"broken", text_or_null(results.broken)},
      {"input_error", text_or_null(results.input_error)},
  };
}

}  // namespace freehold::cli::workers
