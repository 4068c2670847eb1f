// SPDX-License-Identifier: MIT
#include "tools/support/machine.hpp"

#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "tools/doctor/run/attendance.hpp"
#include "tools/doctor/run/program.hpp"

namespace freehold::inline tools {
namespace {
namespace fs = std::filesystem;

// The value behind "key<space>: " in a file of lines.
std::string value_of(const fs::path& file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key)) continue;
    const auto colon = line.find(':');
    if (colon != std::string::npos && colon + 2 <= line.size()) return line.substr(colon + 2);
  }
  return {};
}

unsigned affinity_cpus() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<unsigned>(CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());  // more CPUs than cpu_set_t has bits for
}

// "200000 100000" -> 2; "max 100000" -> none.
std::optional<double> quota_of(const fs::path& file) {
  std::ifstream in(file);
  double quota = 0;
  double period = 0;
  if (in >> quota >> period && quota > 0 && period > 0) return quota / period;
  return {};
}

}  // namespace

std::optional<double> cgroup_cpus(const std::string& root_folder, const std::string& group) {
  std::optional<double> least;
  const fs::path root = root_folder;
  fs::path folder = root / fs::path(group).relative_path();
  for (;;) {
    if (const auto quota = quota_of(folder / "cpu.max")) least = std::min(least.value_or(*quota), *quota);
    if (folder == root || !folder.has_relative_path()) return least;
    folder = folder.parent_path();
  }
}

std::optional<unsigned> cores_of(const std::vector<unsigned>& cpus, const std::string& root) {
  std::set<std::string> cores;
  for (const unsigned cpu : cpus) {
    std::ifstream in(fmt::format("{}/cpu{}/topology/thread_siblings_list", root, cpu));
    std::string list;
    if (!std::getline(in, list)) return std::nullopt;
    cores.insert(list);
  }
  return static_cast<unsigned>(cores.size());
}

std::string huge_pages_mode(const std::string& file) {
  std::ifstream in(file);
  for (std::string word; in >> word;)
    if (word.size() > 2 && word.front() == '[' && word.back() == ']') return word.substr(1, word.size() - 2);
  return {};
}

Machine this_machine() {
  Machine machine;
  machine.cpu_model = value_of("/proc/cpuinfo", "model name");
  machine.cpus = affinity_cpus();
  machine.cpus_source = "affinity";
  const std::string group = value_of("/proc/self/cgroup", "0:").empty() ? "/" : value_of("/proc/self/cgroup", "0:");
  if (const auto allowed = cgroup_cpus("/sys/fs/cgroup", group); allowed && std::ceil(*allowed) < machine.cpus) {
    machine.cpus = static_cast<unsigned>(std::ceil(*allowed));
    machine.cpus_source = "cgroup";
  }
  machine.cores = cores_of(doctor::cpus_in_order());
  utsname name{};
  if (::uname(&name) == 0) machine.system = fmt::format("{} {} {}", name.sysname, name.release, name.machine);
  machine.libc = fmt::format("glibc {}", ::gnu_get_libc_version());
  machine.huge_pages = huge_pages_mode();
  return machine;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

double cpu_seconds_of_others() {
  double own_s = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage use{};
    ::getrusage(who, &use);
    for (const timeval& time : {use.ru_utime, use.ru_stime})
      own_s += static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  }
  return doctor::busy_on(doctor::cpus_in_order()).all_s - own_s;
}

}  // namespace freehold::inline tools
