// SPDX-License-Identifier: MIT
// Memory and descriptors of a process, by /proc; and a wait for a change that another process or thread makes.
#pragma once
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

namespace freehold::test {

struct MemoryOf {
  std::size_t mapped = 0, resident = 0;  // bytes; 0 if the process is gone
};
inline MemoryOf memory_of(int pid) {
  MemoryOf memory;
  std::ifstream("/proc/" + std::to_string(pid) + "/statm") >> memory.mapped >> memory.resident;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return {memory.mapped * page, memory.resident * page};
}
inline MemoryOf own_memory() { return memory_of(::getpid()); }

inline std::size_t open_descriptors() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator{}));
}

// Looks until it holds, for at most twenty seconds.
template <class Holds>
bool comes_true(Holds holds) {
  for (int i = 0; i < 4000; ++i) {
    if (holds()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

}  // namespace freehold::test
