// SPDX-License-Identifier: MIT
#include "tools/doctor/run/watch.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include "tools/live/memory_map.hpp"
#include "tools/live/proc_folder.hpp"
#include "tools/live/process.hpp"

namespace freehold::doctor {
namespace {
namespace fs = std::filesystem;

struct Status {
  bool running = false;
  std::string cpus;  // "0-3,8"
  std::uint64_t peak_rss_bytes = 0;
};

Status status_of(const fs::path& task) {
  Status status;
  std::ifstream in(task / "status");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("State:\t")) status.running = line[7] == 'R';
    if (line.starts_with("Cpus_allowed_list:\t")) status.cpus = line.substr(19);
    if (line.starts_with("VmHWM:")) status.peak_rss_bytes = std::stoull(line.substr(6)) * 1024;
  }
  return status;
}

// "0-3,8" -> sets 0, 1, 2, 3 and 8.
void add_list(std::string_view list, std::set<unsigned>& cpus) {
  const char* at = list.data();
  const char* const end = at + list.size();
  while (at < end) {
    unsigned first = 0;
    auto parsed = std::from_chars(at, end, first);
    if (parsed.ec != std::errc()) return;
    unsigned last = first;
    if (parsed.ptr < end && *parsed.ptr == '-') parsed = std::from_chars(parsed.ptr + 1, end, last);
    for (unsigned cpu = first; cpu <= last; ++cpu) cpus.insert(cpu);
    at = parsed.ptr + 1;
  }
}

}  // namespace

void Watch::look() {
  const bool files_too =
      (looks_ & (looks_ - 1)) == 0;  // the first looks, then ever fewer: a program loads what it needs early
  ++looks_;
  unsigned threads = 0;
  unsigned ready = 0;
  std::set<std::string> on_cpus;
  std::set<unsigned> usable;
  for (const pid_t pid : live::family_of(root_)) {
    const fs::path tasks = live::proc_folder(pid) / "task";
    for (const pid_t task : live::threads_of(pid)) {
      ++threads;
      const fs::path folder = tasks / std::to_string(task);
      add_times(task, folder);
      const Status status = status_of(folder);
      if (!status.cpus.empty()) ready_s_by_cpus_[status.cpus] += std::exchange(threads_[task].ready_s, 0);
      if (status.running) {
        ++ready;
        if (const auto fields = live::stat_fields(folder); fields.size() > live::StatField::kCpu)
          on_cpus.insert(fields[live::StatField::kCpu]);
        add_list(status.cpus, usable);
      }
      peak_rss_bytes_ = std::max(peak_rss_bytes_, status.peak_rss_bytes);
    }
    if (files_too) add_files(pid);
  }
  most_threads_ = std::max(most_threads_, threads);
  looks_at_ready_ += ready > 0 ? 1 : 0;
  ready_threads_ += ready;
  if (const std::size_t most = std::min<std::size_t>(ready, usable.size()); most > 1 && !on_cpus.empty()) {
    cpus_apart_ += on_cpus.size() - 1;
    most_apart_ += most - 1;
  }
}

Watch::Times Watch::times() const noexcept {
  Times times = times_;
  times.ready = static_cast<double>(ready_threads_) / std::max(1U, looks_);
  return times;
}

std::optional<double> Watch::ready_share() const {
  constexpr unsigned kEnoughLooks = 6;
  if (looks_ < kEnoughLooks) return std::nullopt;
  return static_cast<double>(looks_at_ready_) / looks_;
}

std::optional<double> Watch::apart_share() const {
  if (most_apart_ == 0) return std::nullopt;
  return std::min(1.0, static_cast<double>(cpus_apart_) / static_cast<double>(most_apart_));
}

unsigned Watch::own_cpus() const {
  std::map<unsigned, double> ready_s;  // by CPU
  double all_s = 0;
  for (const auto& [list, seconds] : ready_s_by_cpus_) {
    all_s += seconds;
    std::set<unsigned> cpus;
    add_list(list, cpus);
    for (const unsigned cpu : cpus) ready_s[cpu] += seconds;
  }
  return static_cast<unsigned>(std::ranges::count_if(ready_s, [&](const auto& of) { return of.second >= 0.1 * all_s; }));
}

void Watch::look_at_times_of_root() { add_times(root_, live::proc_folder(root_) / "task" / std::to_string(root_)); }

void Watch::add_times(int task, const std::string& folder) {
  std::ifstream in(folder + "/schedstat");
  double ran_ns = 0, waited_ns = 0;
  if (!(in >> ran_ns >> waited_ns)) return;
  Thread& thread = threads_[task];
  const Times now{1e-9 * ran_ns, 1e-9 * waited_ns};
  if (now.ran_s < thread.seen.ran_s) thread = {};  // another thread has the number now
  const Times since{now.ran_s - thread.seen.ran_s, now.waited_s - thread.seen.waited_s};
  times_.ran_s += since.ran_s;
  times_.waited_s += since.waited_s;
  thread.ready_s += since.ran_s + since.waited_s;
  thread.seen = now;
}

// A process that ends while it is read shows the lower addresses alone: its C library, and not what was preloaded before.
void Watch::add_files(pid_t pid) {
  const std::string maps = live::maps_of(pid);
  if (!live::maps_of(pid).empty()) files_.merge(live::files_of(live::code_mappings(maps)));
}

}  // namespace freehold::doctor
