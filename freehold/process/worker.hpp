// A worker process: takes tasks from the table, one at a time, and gives them to a component. freehold-worker is a program
// that loads a component from a shared object; a program of one's own does the same with
//
//   int main() {
//     freehold::process::Worker worker;   // first of all: the process dies with its supervisor from here on
//     if (!worker.ok()) return 2;         // not started by a supervisor
//     return worker.run(my_component);
//   }
//
// The worker ends by itself, between two tasks, when it has been idle for too long or has grown old, large or tired; exit
// statuses tell the supervisor why. Whatever else ends it is a crash, and the supervisor hands its task on.
// Threads: the main thread only. Nothing else of the process matters to the table.
//
// A component may fork. Its children have neither the table (MADV_DONTFORK), input and output included, nor, once they exec,
// its descriptor and the wakeup eventfd; one that returns from the component ends. They are in the worker's process group,
// which is killed when the worker ends.
#pragma once
#include <cstdint>

#include "freehold/process/component.h"
#include "freehold/process/shared_memory.hpp"
#include "freehold/process/task_table.hpp"
#include "freehold/sync/atomics.hpp"

namespace freehold::process {

using Table = TaskTable<sync::NativeAtomics>;

// A worker's limits; 0 is none.
struct WorkerLimits {
  std::uint64_t idle = 0;     // nanoseconds without a task
  std::uint64_t max_age = 0;  // nanoseconds
  std::uint64_t max_tasks = 0;
  std::uint64_t max_rss = 0;  // bytes; looked at after each task of 1 ms or more, or after 64 tasks
};

// Exit statuses of a worker that was not in a task.
enum class WorkerExit : int {
  kClosed = 0,
  kIdle = 80,
  kMaxTasks = 81,
  kMaxRss = 82,
  kMaxAge = 83,
  kNoTable = 84,      // it did not find the table that its supervisor should have given it
  kNoComponent = 85,  // the shared object could not be loaded
  kNotConfined = 87,  // the kernel has refused what confine.hpp says
  kRevoked = 86,      // the task was taken from it
};

// What a supervisor gives a worker: the table as this descriptor, the wakeup eventfd, and the variable with the rest.
inline constexpr int kTableDescriptor = 3, kWakeupDescriptor = 4;
inline constexpr const char* kWorkerVariable = "FREEHOLD_WORKER";

// Nanoseconds of the clock that all processes share.
[[nodiscard]] std::uint64_t now() noexcept;
// Bytes that a process holds in memory for itself, so without the table, libraries and mapped files (/proc/<pid>/statm); 0
// if unknown. pid 0: this process.
[[nodiscard]] std::uint64_t own_resident_bytes(int pid) noexcept;
// Nanoseconds for which a process's main thread was ready to run and had no CPU; 0 if unknown.
[[nodiscard]] std::uint64_t time_without_cpu(int pid) noexcept;
// A process by its number (the lower 22 bits) and its start time, so that a number used again is noticed; 0 if there is
// none.
[[nodiscard]] std::uint64_t identity_of(int pid) noexcept;
[[nodiscard]] constexpr int pid_of(std::uint64_t identity) noexcept { return static_cast<int>(identity & ((1u << 22) - 1)); }
// Rings an eventfd.
void notify(int wakeup_fd) noexcept;

class Worker {
 public:
  // Attaches to the supervisor that started this process, and asks the system to be killed with it.
  Worker() noexcept;
  [[nodiscard]] bool ok() const noexcept { return memory_.ok(); }
  // Runs tasks until it is time to end. Returns the exit status. Pre: ok().
  int run(freehold_component* component) noexcept;

 private:
  [[nodiscard]] bool leave_children_alone(const SharedMemory& memory) noexcept;
  void run_task(Table& table, const Claim& claim, freehold_component* component) noexcept;
  [[nodiscard]] int retire(std::uint64_t tasks) noexcept;

  SharedMemory memory_;
  TableShape shape_;
  const bool* original_ = nullptr;  // false in a forked child, where the page is wiped
  unsigned slot_ = 0;
  WorkerLimits limits_;
  std::uint64_t born_ = 0;
  std::uint64_t looked_at_rss_ = 0;  // the time
};

}  // namespace freehold::process
