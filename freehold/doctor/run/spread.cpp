// SPDX-License-Identifier: MIT
#include "freehold/doctor/run/spread.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "freehold/live/proc_folder.hpp"
#include "freehold/live/process.hpp"

namespace freehold::doctor {
namespace {

constexpr int kFieldsToCpu = 36;  // of a thread's "stat", from its state to the CPU that it ran on last

// The CPU of a thread that runs or is ready to; none if it sleeps.
std::optional<unsigned> cpu_of_ready(const std::filesystem::path& task) {
  std::ifstream in(task / "stat");
  std::string line;
  std::getline(in, line);
  const std::size_t name_end = line.rfind(')');  // a name may hold anything
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(name_end + 1));
  std::string state, skipped;
  fields >> state;
  for (int i = 1; i < kFieldsToCpu; ++i) fields >> skipped;
  unsigned cpu = 0;
  return state == "R" && fields >> cpu && cpu < CPU_SETSIZE ? std::optional(cpu) : std::nullopt;
}

std::optional<cpu_set_t> cpus_of(pid_t thread) {
  cpu_set_t cpus;
  return ::sched_getaffinity(thread, sizeof cpus, &cpus) == 0 ? std::optional(cpus) : std::nullopt;
}
void set_cpus(pid_t thread, const cpu_set_t& cpus) { ::sched_setaffinity(thread, sizeof cpus, &cpus); }
cpu_set_t only(unsigned cpu) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(cpu, &cpus);
  return cpus;
}

// The first of `allowed` that is not in `used`.
std::optional<unsigned> free_cpu(const cpu_set_t& allowed, const cpu_set_t& used) {
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed) && !CPU_ISSET(cpu, &used)) return cpu;
  return std::nullopt;
}

}  // namespace

Spread::Spread(pid_t root) : root_(root) {
  const std::optional<cpu_set_t> cpus = cpus_of(root);
  is_left_alone_ = !cpus || CPU_COUNT(&*cpus) < 2;
  if (cpus) allowed_ = *cpus;
}

void Spread::look() {
  if (is_left_alone_) return;
  const std::vector<Thread> all = threads();
  Keep now;
  for (const Thread& thread : all)
    if (!knows(thread, now)) {
      let_all_go();
      is_left_alone_ = true;
      return;
    }
  if (now.size() > static_cast<std::size_t>(CPU_COUNT(&allowed_)))
    let_all_go(), now.clear();
  else
    keep_apart(now);
  kept_ = std::move(now);
  move_ready(all);
}

std::vector<Spread::Thread> Spread::threads() const {
  std::vector<Thread> found;
  for (const pid_t pid : live::family_of(root_))
    for (const pid_t id : live::threads_of(pid))
      found.push_back({id, id == pid, cpu_of_ready(live::proc_folder(pid) / "task" / std::to_string(id))});
  return found;
}

// False: the program chose its CPUs. A thread whose parent was kept on one CPU may use all again.
bool Spread::knows(const Thread& thread, Keep& now) {
  const auto before = kept_.find(thread.id);
  if (before != kept_.end() && before->second) {
    now.insert(*before);
    return true;
  }
  const std::optional<cpu_set_t> cpus = cpus_of(thread.id);
  if (!cpus) return true;
  if (!CPU_EQUAL(&*cpus, &allowed_)) {
    const bool is_inherited = std::ranges::any_of(kept_, [&](const auto& kept) {
      if (!kept.second) return false;
      const cpu_set_t one = only(*kept.second);
      return CPU_EQUAL(&*cpus, &one);
    });
    if (!is_inherited) return false;
    set_cpus(thread.id, allowed_);
  }
  if (!thread.is_first) now.emplace(thread.id, std::nullopt);
  return true;
}

// Those that were there at the last look: of others it is not known yet whether they choose for themselves.
void Spread::keep_apart(Keep& now) const {
  cpu_set_t used;
  CPU_ZERO(&used);
  for (const auto& [id, cpu] : now)
    if (cpu) CPU_SET(*cpu, &used);
  for (auto& [id, cpu] : now) {
    if (cpu || !kept_.contains(id)) continue;
    cpu = free_cpu(allowed_, used);
    if (!cpu) return;
    CPU_SET(*cpu, &used);
    set_cpus(id, only(*cpu));
  }
}

void Spread::let_all_go() {
  for (const auto& [id, cpu] : kept_)
    if (cpu) set_cpus(id, allowed_);
  kept_.clear();
}

void Spread::move_ready(const std::vector<Thread>& threads) const {
  std::map<unsigned, unsigned> ready_on;
  cpu_set_t used;
  CPU_ZERO(&used);
  for (const Thread& thread : threads)
    if (thread.ready_on) {
      ++ready_on[*thread.ready_on];
      CPU_SET(*thread.ready_on, &used);
    }
  for (const Thread& thread : threads) {
    const auto kept = kept_.find(thread.id);
    if (!thread.ready_on || ready_on[*thread.ready_on] < 2 || (kept != kept_.end() && kept->second)) continue;
    const std::optional<unsigned> cpu = free_cpu(allowed_, used);
    if (!cpu) return;
    set_cpus(thread.id, only(*cpu));
    set_cpus(thread.id, allowed_);
    CPU_SET(*cpu, &used);
    --ready_on[*thread.ready_on];
  }
}

}  // namespace freehold::doctor
