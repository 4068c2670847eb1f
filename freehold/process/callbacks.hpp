// Functions that are called when tasks are over: a thread of the client's own, which begins with the first of them, sleeps
// on one futex for all its tasks. Whoever ends a task for which somebody waits adds to that word after the task's own; the
// thread reads it, looks at its tasks, and sleeps only while it is the same.
//
// Every function is called exactly once, one after the other: one that takes long delays the others. It may submit tasks.
// Threads: any on add(). Cost: a look at each task that is waited for, whenever one of them ends.
#pragma once
#include <pthread.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <vector>

#include "freehold/process/client.hpp"

namespace freehold::process {

class Callbacks {
 public:
  using Function = std::function<void(Result)>;

  explicit Callbacks(Client& client) noexcept : client_(client) {}
  // Tasks that are not over by then are dropped, and their functions get kNoWorker. Not by one of the functions.
  ~Callbacks();
  Callbacks(const Callbacks&) = delete;
  Callbacks& operator=(const Callbacks&) = delete;

  // Pre: the future is valid. Without a thread, because the system refuses one, it waits here and calls.
  void add(Future future, Function function);

 private:
  struct Pending {
    Future future;
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
