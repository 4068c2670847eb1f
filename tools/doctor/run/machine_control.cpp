// SPDX-License-Identifier: MIT
#include "tools/doctor/run/machine_control.hpp"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>

#include "freehold/os/mapped_file.hpp"
#include "freehold/os/memory_file.hpp"
#include "freehold/os/pages.hpp"
#include "tools/doctor/facts/derived.hpp"
#include "tools/doctor/run/child.hpp"

namespace freehold::doctor {
namespace {

constexpr std::uint64_t kSteps = 12'000'000;  // of arithmetic: some 20 ms
// Streamed through twice: more than any cache that a CPU has for itself, and with all CPUs' together more than what they
// share.
constexpr std::size_t kMemory = std::size_t{32} << 20;
constexpr int kPasses = 3;
constexpr double kTimeout_s = 5;  // a process that has not come by then was killed by somebody

enum class Load { kCompute, kMemory };

// The processes share this: their start, and (behind it) what each of them took.
struct alignas(double) Board {
  std::atomic<unsigned> ready;
  std::atomic<bool> go;

  [[nodiscard]] double* seconds() { return reinterpret_cast<double*>(this + 1); }
};

std::uint64_t compute() {
  std::uint64_t value = 0x2545f4914f6cdd1d;
  for (std::uint64_t i = 0; i < kSteps; ++i) {
    value ^= value << 13;
    value ^= value >> 7;
    value ^= value << 17;
  }
  return value;
}

std::uint64_t stream(std::span<std::uint64_t> words) {
  std::uint64_t sum = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    for (std::uint64_t& word : words) sum += ++word;
  }
  return sum;
}

[[noreturn]] void work(Load load, unsigned cpu, unsigned index, Board& board, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(0);
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(cpu, &only);
  ::sched_setaffinity(0, sizeof only, &only);
  void* memory = nullptr;
  if (load == Load::kMemory) {
    memory = os::Pages::map(kMemory);
    if (memory == nullptr) ::_exit(1);
    std::memset(memory, 1, kMemory);  // it is there before the clock starts
  }
  board.ready.fetch_add(1);
  while (!board.go.load()) {
  }
  const double begin = now_s();
  volatile std::uint64_t result =
      load == Load::kCompute ? compute() : stream({static_cast<std::uint64_t*>(memory), kMemory / sizeof(std::uint64_t)});
  static_cast<void>(result);
  board.seconds()[index] = now_s() - begin;
  ::_exit(0);
}

// The median of what a process on each of these CPUs took; 0: one of them failed.
double time_of(Load load, std::span<const unsigned> cpus) {
  const std::size_t bytes = sizeof(Board) + cpus.size() * sizeof(double);
  const int file = os::create_memory_file("freehold-doctor-control", bytes);
  if (file < 0) return 0;
  void* const memory = os::MappedFile::map_shared(file, bytes);
  ::close(file);
  if (memory == nullptr) return 0;
  Board& board = *new (memory) Board{};
  std::vector<pid_t> children;
  const pid_t self = ::getpid();
  for (unsigned i = 0; i < cpus.size(); ++i) {
    const pid_t child = ::fork();
    if (child == 0) work(load, cpus[i], i, board, self);
    if (child > 0) children.push_back(child);
  }
  const double timeout_s = now_s() + kTimeout_s;
  while (board.ready.load() < cpus.size() && now_s() < timeout_s) ::usleep(200);
  board.go.store(true);
  bool all = children.size() == cpus.size();
  for (const pid_t child : children) {
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    all = all && status == 0;
  }
  const double taken = all ? median({board.seconds(), board.seconds() + cpus.size()}) : 0;
  os::MappedFile::unmap(memory, bytes);
  return taken;
}

void read_one(Load load, std::span<const unsigned> cpus, std::vector<double>& ratios) {
  const double alone = time_of(load, cpus.first(1));
  const double together = time_of(load, cpus);
  if (alone > 0 && together > 0) ratios.push_back(together / alone);
}

}  // namespace

void MachineControl::read(unsigned readings) {
  if (cpus_.size() < 2) return;
  for (unsigned i = 0; i < readings; ++i) {
    read_one(Load::kCompute, cpus_, compute_);
    read_one(Load::kMemory, cpus_, memory_);
  }
}

Control MachineControl::control() const {
  Control control;
  if (!compute_.empty()) control.compute = median(compute_);
  if (!memory_.empty()) control.memory = median(memory_);
  return control;
}

}  // namespace freehold::doctor
