// SPDX-License-Identifier: MIT
#include "tools/live/process.hpp"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>

#include "tools/live/proc_folder.hpp"

namespace freehold::live {
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

// Returns whether the process or thread of the folder has ended, or has begun to and has no memory any more.
bool is_ending(const fs::path& folder) {
  constexpr unsigned long kIsEnding = 0x4;  // the kernel's PF_EXITING
  const auto fields = stat_fields(folder);
  if (fields.size() <= StatField::kFlags) return true;
  const std::string& state = fields[StatField::kState];
  return state == "Z" || state == "X" || (std::stoul(fields[StatField::kFlags]) & kIsEnding) != 0;
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
  return number_in(text_of_proc_file(proc_folder(process) / "task" / std::to_string(thread) / "status"),
                   "voluntary_ctxt_switches:");
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

std::uint64_t user_of(pid_t pid) { return number_in(text_of_proc_file(proc_folder(pid) / "status"), "Uid:"); }

std::string short_name_of(pid_t pid) {
  std::string name;
  std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
  std::getline(file, name);
  return name;
}

}  // namespace freehold::live
