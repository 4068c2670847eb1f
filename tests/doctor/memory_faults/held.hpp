// SPDX-License-Identifier: MIT
// The common part of the programs that hold memory for one known reason each: how long they hold it, and blocks that are
// written to. Everything that a program of the suite does beside that is its reason. Each holds 15 to 70 MiB for a third of
// a second.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace held {

inline constexpr std::size_t kMebibyte = std::size_t{1} << 20;

// As a service that waits for work.
inline void hold(int ms = 300) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

struct Free {
  void operator()(char* block) const { std::free(block); }
};
using Block = std::unique_ptr<char, Free>;

// A block of malloc's, every byte of it written.
inline Block block(std::size_t bytes) {
  char* const made = static_cast<char*>(std::malloc(bytes));
  if (made == nullptr) std::abort();
  std::memset(made, 'x', bytes);
  return Block(made);
}

}  // namespace held
