// SPDX-License-Identifier: MIT
// A worker process: takes tasks from the table, one at a time, and gives them to a component. freehold-worker is the program
// that loads a component from a shared object; a program of one's own does the same:
//
//   int main() {
//     freehold::process::Worker worker;   // first: from here on the process dies with its supervisor
//     if (!worker.ok()) return 2;         // not started by a supervisor
//     return worker.run(my_component);
//   }
//
// A worker ends by itself between two tasks, when it has been idle for too long or has reached a limit of age, tasks or
// memory; its exit status tells the supervisor why. Any other end is a crash, and the supervisor gives its task to another
// worker.
//
// A component may fork. Its children do not have the memory of the table (MADV_DONTFORK), input and output included, nor,
// once they exec, the descriptors of table and wakeup eventfd. A child that returns from the component ends. Children are in
// the worker's process group, which is killed when the worker ends.
//
// Threads: the main thread only.
#pragma once
#include <memory>

#include "freehold/component.h"

namespace freehold::process {

/// The worker's side of a pool, for a worker program of one's own.
class Worker {
 public:
  /// Attaches to the supervisor that started this process, and asks the system to be killed with it.
  /// Errors: !ok() if no supervisor has started this process.
  Worker() noexcept;
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  /// @return whether it is attached.
  [[nodiscard]] bool ok() const noexcept { return table_ != nullptr; }
  /// Runs tasks until it is time to end. Pre: ok().
  /// @param component  called for each task, on this thread
  /// @return the exit status, with which the program must end.
  int run(freehold_component* component) noexcept;

 private:
  class AttachedTable;
  std::unique_ptr<AttachedTable> table_;  // null: not attached
};

}  // namespace freehold::process
