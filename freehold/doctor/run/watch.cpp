// SPDX-License-Identifier: MIT
#include "freehold/doctor/run/watch.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>

#include "freehold/doctor/analysis/memory_map.hpp"
#include "freehold/doctor/run/proc_folder.hpp"

namespace freehold::doctor {
namespace {
namespace fs = std::filesystem;

// The numbers that name a folder's entries: processes, threads, open files.
std::vector<int> numbers_in(const fs::path& folder) {
  std::vector<int> numbers;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    int number = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), number).ec == std::errc()) numbers.push_back(number);
  }
  return numbers;
}

// Of a process's or a thread's folder: whether it has ended, or has begun to and has no memory any more.
bool is_ending(const fs::path& folder) {
  constexpr unsigned long kIsEnding = 0x4;  // the kernel's PF_EXITING
  const auto fields = stat_fields(folder);
  if (fields.size() <= StatField::kFlags) return true;
  const std::string& state = fields[StatField::kState];
  return state == "Z" || state == "X" || (std::stoul(fields[StatField::kFlags]) & kIsEnding) != 0;
}

struct Status {
  bool running = false;
  std::string cpus;  // "0-3,8"
};

Status status_of(const fs::path& task) {
  Status status;
  std::ifstream in(task / "status");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("State:\t")) status.running = line[7] == 'R';
    if (line.starts_with("Cpus_allowed_list:\t")) status.cpus = line.substr(19);
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

// Inodes of the sockets that wait for connections, in the network that the process sees.
std::set<std::string> listening_sockets(pid_t pid) {
  constexpr std::string_view kListen = "0A";
  constexpr unsigned long kAcceptsConnections = 0x10000;
  std::set<std::string> inodes;
  for (const char* table : {"tcp", "tcp6"}) {
    std::ifstream in(proc_folder(pid) / "net" / table);
    for (std::string line; std::getline(in, line);) {
      std::istringstream words(line);
      std::string word[10];
      for (std::string& each : word) words >> each;
      if (word[3] == kListen) inodes.insert(word[9]);
    }
  }
  std::ifstream in(proc_folder(pid) / "net/unix");
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string slot, references, protocol, flags, type, state, inode;
    words >> slot >> references >> protocol >> flags >> type >> state >> inode;
    unsigned long bits = 0;
    std::from_chars(flags.data(), flags.data() + flags.size(), bits, 16);
    if ((bits & kAcceptsConnections) != 0) inodes.insert(inode);
  }
  return inodes;
}

}  // namespace

std::vector<pid_t> family_of(pid_t root, const std::vector<pid_t>& adopted) {
  std::vector<pid_t> family{root};
  family.insert(family.end(), adopted.begin(), adopted.end());
  for (std::size_t i = 0; i < family.size(); ++i) {
    const fs::path tasks = proc_folder(family[i]) / "task";
    for (const int task : numbers_in(tasks)) {
      std::ifstream children(tasks / std::to_string(task) / "children");
      for (pid_t child = 0; children >> child;) family.push_back(child);
    }
  }
  return family;
}

std::vector<pid_t> threads_of(pid_t process) { return numbers_in(proc_folder(process) / "task"); }

pid_t thread_with_memory(pid_t process) {
  if (!is_ending(proc_folder(process))) return process;
  for (const pid_t thread : threads_of(process))
    if (!is_ending(proc_folder(process) / "task" / std::to_string(thread))) return thread;
  return 0;
}

std::string maps_of(pid_t process) {
  const pid_t thread = thread_with_memory(process);
  return thread == 0 ? std::string() : text_of_proc_file(proc_folder(thread) / "maps");
}

std::string sleeping_call_of(pid_t process, pid_t thread) {
  std::ifstream in(proc_folder(process) / "task" / std::to_string(thread) / "syscall");
  std::string call;
  std::getline(in, call);
  return call;
}

std::uint64_t sleeps_of(pid_t process, pid_t thread) {
  constexpr std::string_view kSleeps = "voluntary_ctxt_switches:";
  std::ifstream in(proc_folder(process) / "task" / std::to_string(thread) / "status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(kSleeps)) return std::strtoull(line.c_str() + kSleeps.size(), nullptr, 10);
  return 0;
}

bool listens(pid_t root) {
  const std::set<std::string> listening = listening_sockets(root);
  if (listening.empty()) return false;
  for (const pid_t pid : family_of(root)) {
    const fs::path files = proc_folder(pid) / "fd";
    for (const int fd : numbers_in(files)) {
      std::error_code error;
      const std::string target = fs::read_symlink(files / std::to_string(fd), error).string();
      if (target.starts_with("socket:[") && listening.contains(target.substr(8, target.size() - 9))) return true;
    }
  }
  return false;
}

void Watch::look() {
  const bool files_too =
      (looks_ & (looks_ - 1)) == 0;  // the first looks, then ever fewer: a program loads what it needs early
  ++looks_;
  unsigned threads = 0;
  bool any_ready = false;
  std::set<unsigned> allowed;
  std::string last_list;  // most threads have the same
  for (const pid_t pid : family_of(root_)) {
    const fs::path tasks = proc_folder(pid) / "task";
    for (const int task : numbers_in(tasks)) {
      ++threads;
      const fs::path folder = tasks / std::to_string(task);
      add_times(task, folder);
      const Status status = status_of(folder);
      any_ready = any_ready || status.running;
      if (!status.running || status.cpus == last_list) continue;
      last_list = status.cpus;
      add_list(status.cpus, allowed);
    }
    if (files_too) add_files(pid);
  }
  most_threads_ = std::max(most_threads_, threads);
  looks_at_ready_ += any_ready ? 1 : 0;
  if (allowed.empty()) return;
  ++looks_at_running_;
  if (allowed_.size() <= *allowed.rbegin()) allowed_.resize(*allowed.rbegin() + 1);
  for (const unsigned cpu : allowed) ++allowed_[cpu];
}

std::optional<double> Watch::ready_share() const {
  constexpr unsigned kEnoughLooks = 6;
  if (looks_ < kEnoughLooks) return std::nullopt;
  return static_cast<double>(looks_at_ready_) / looks_;
}

unsigned Watch::own_cpus() const {
  return static_cast<unsigned>(
      std::ranges::count_if(allowed_, [this](unsigned looks) { return looks > 0 && looks * 10 >= looks_at_running_; }));
}

void Watch::look_at_times_of_root() { add_times(root_, proc_folder(root_) / "task" / std::to_string(root_)); }

void Watch::add_times(int task, const std::string& folder) {
  std::ifstream in(folder + "/schedstat");
  double ran_ns = 0, waited_ns = 0;
  if (!(in >> ran_ns >> waited_ns)) return;
  Times& last = times_of_[task];
  const Times now{1e-9 * ran_ns, 1e-9 * waited_ns};
  if (now.ran_s < last.ran_s) last = {};  // another thread has the number now
  times_.ran_s += now.ran_s - last.ran_s;
  times_.waited_s += now.waited_s - last.waited_s;
  last = now;
}

void Watch::add_files(pid_t pid) { files_.merge(files_of(code_mappings(maps_of(pid)))); }

}  // namespace freehold::doctor
