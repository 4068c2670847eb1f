// SPDX-License-Identifier: MIT
#include "freehold/process/supervisor/pool_stats.hpp"

#include <cstdio>
#include <iterator>
#include <string>
#include <utility>

namespace freehold {
namespace {

using process::ExitReason;
using process::kExitReasons;

// Calls visit(name, value, whether it only grows, what it is) for each figure.
template <class Visit>
void for_each_figure(const ProcessPoolStats& stats, Visit visit) {
  visit("tasks_submitted", stats.tasks.submitted, true, "Tasks that were accepted");
  visit("tasks_delivered", stats.tasks.delivered, true, "Tasks whose end was got, failed ones included");
  visit("tasks_failed", stats.tasks.failed, true, "Tasks that ended without output");
  visit("tasks_refused", stats.tasks.refused, true, "Tasks that were not accepted");
  visit("tasks_handed_on", stats.workers.handed_on, true, "Times that a task went on to another worker");
  visit("tasks_retried", stats.workers.retried, true, "Times that a task went on because its component refused it");
  visit("tasks_waiting", stats.waiting, false, "Tasks that wait for a worker");
  visit("tasks_running", stats.running, false, "Tasks that run");
  visit("max_open_tasks", stats.max_open_tasks, false, "Tasks that there is room for");
  visit("workers_live", stats.workers.live, false, "Worker processes");
  visit("workers_started", stats.workers.started, true, "Worker processes that were started");
  visit("tables_damaged", stats.workers.damaged, true, "Times that a component wrote into the table");
}

constexpr std::pair<const char*, std::uint64_t process::ClientStats::*> kQuantiles[] = {
    {"0.5", &process::ClientStats::median}, {"0.9", &process::ClientStats::p90}, {"0.99", &process::ClientStats::p99}};

std::string name_of(ExitReason exit_reason) {
  std::string name = process::text(exit_reason);
  for (char& c : name)
    if (c == ' ') c = '_';
  return name;
}

}  // namespace

std::string text(const ProcessPoolStats& s) {
  char line[512];
  int used =
      std::snprintf(line, sizeof line,
                    "waiting %u, running %u of %u; %u workers; %llu done, %llu failed, %llu refused; median %.0f us, "
                    "99%% %.0f us; %llu handed on; ended:",
                    s.waiting, s.running, s.max_open_tasks, s.workers.live,
                    static_cast<unsigned long long>(s.tasks.delivered), static_cast<unsigned long long>(s.tasks.failed),
                    static_cast<unsigned long long>(s.tasks.refused), static_cast<double>(s.tasks.median) / 1e3,
                    static_cast<double>(s.tasks.p99) / 1e3, static_cast<unsigned long long>(s.workers.handed_on));
  std::string text(line, static_cast<std::size_t>(used));
  for (std::size_t i = 0; i < kExitReasons; ++i) {
    if (s.workers.ended[i] == 0) continue;
    used = std::snprintf(line, sizeof line, " %s %llu", process::text(static_cast<ExitReason>(i)),
                         static_cast<unsigned long long>(s.workers.ended[i]));
    text.append(line, static_cast<std::size_t>(used));
  }
  return text;
}

std::string json_text(const ProcessPoolStats& stats) {
  std::string json = "{";
  for_each_figure(stats, [&](const char* name, std::uint64_t value, bool, const char*) {
    json += std::string("\"") + name + "\":" + std::to_string(value) + ",";
  });
  json += "\"workers_ended\":{";
  for (std::size_t i = 0; i < kExitReasons; ++i)
    json += (i == 0 ? "\"" : ",\"") + name_of(static_cast<ExitReason>(i)) + "\":" + std::to_string(stats.workers.ended[i]);
  json += "},\"latency_ns\":{";
  for (std::size_t i = 0; i < std::size(kQuantiles); ++i)
    json +=
        std::string(i == 0 ? "\"" : ",\"") + kQuantiles[i].first + "\":" + std::to_string(stats.tasks.*kQuantiles[i].second);
  return json + "}}";
}

std::string prometheus_text(const ProcessPoolStats& stats, const std::string& prefix) {
  std::string text;
  const auto head = [&](const std::string& name, const char* type, const char* help) {
    text += "# HELP " + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
  };
  for_each_figure(stats, [&](const char* figure, std::uint64_t value, bool grows, const char* help) {
    const std::string name = prefix + "_" + figure + (grows ? "_total" : "");
    head(name, grows ? "counter" : "gauge", help);
    text += name + " " + std::to_string(value) + "\n";
  });
  const std::string ended = prefix + "_workers_ended_total";
  head(ended, "counter", "Worker processes that ended, by reason");
  for (std::size_t i = 0; i < kExitReasons; ++i)
    text +=
        ended + "{reason=\"" + name_of(static_cast<ExitReason>(i)) + "\"} " + std::to_string(stats.workers.ended[i]) + "\n";
  const std::string latency = prefix + "_latency_seconds";
  head(latency, "summary", "From submission to the moment when the result was got");
  for (const auto& [quantile, member] : kQuantiles) {
    char value[40];
    std::snprintf(value, sizeof value, "%.9f", static_cast<double>(stats.tasks.*member) / 1e9);
    text += latency + "{quantile=\"" + quantile + "\"} " + value + "\n";
  }
  return text + latency + "_count " + std::to_string(stats.tasks.delivered) + "\n";
}

}  // namespace freehold
