// SPDX-License-Identifier: MIT
// Calls functions when tasks are over (Future::then): a thread of the client's own, which starts with the first function and
// sleeps on one futex for all tasks. The end of a task with a waiter adds to the client's word after the task's own. The
// thread reads that word, checks its tasks, and sleeps only while the word is the same.
//
// Every function is called exactly once, one after the other; a long one delays the others. It may submit tasks.
// Threads: any on add(). Cost: one look at each task with a function, whenever one of the client's tasks ends.
#pragma once
#include <pthread.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <vector>

#include "freehold/process/client/client.hpp"

namespace freehold::process {

class Callbacks {
 public:
  using Function = std::function<void(Result)>;

  explicit Callbacks(Client& client) noexcept : client_(client) {}
  ~Callbacks() { end(); }
  Callbacks(const Callbacks&) = delete;
  Callbacks& operator=(const Callbacks&) = delete;

  // Drops the tasks that are not over; their functions get kNoWorker. Pre: not called by one of the functions.
  void end() noexcept;
  // Calls `function` with the result of the task. If the system refuses a thread, it waits and calls on this one.
  void add(EntryHandle entry, Function function);

 private:
  struct Pending {
    EntryHandle entry;
    Function function;
  };

  static void* thread_main(void* callbacks);
  void run();
  void take_new(std::vector<Pending>& pending);
  [[nodiscard]] bool deliver(std::vector<Pending>& pending);
  [[nodiscard]] bool start() noexcept;

  Client& client_;
  std::mutex lock_;
  std::vector<Pending> new_;
  bool has_thread_ = false;
  pthread_t thread_{};
  int owner_ = 0;  // the process that has the thread
  std::atomic<bool> stopping_{false};
};

}  // namespace freehold::process
