// SPDX-License-Identifier: MIT
#include "freehold/process/client/callbacks.hpp"

#include <unistd.h>

#include <utility>

#include "freehold/process/signals.hpp"

namespace freehold::process {

void Callbacks::end() noexcept {
  if (!has_thread_ || owner_ != ::getpid()) return;  // a child of fork has not got the thread
  stopping_.store(true);
  client_.table().clients().wake(client_.slot());
  ::pthread_join(thread_, nullptr);
  has_thread_ = false;
}

void Callbacks::add(EntryHandle entry, Function function) {
  std::unique_lock guard(lock_);
  if (!has_thread_ && !start()) {
    guard.unlock();
    function(client_.get(std::move(entry)));
    return;
  }
  new_.push_back({std::move(entry), std::move(function)});
  guard.unlock();
  client_.table().clients().wake(client_.slot());
}

bool Callbacks::start() noexcept {
  const BlockedSignals blocked;
  has_thread_ = ::pthread_create(&thread_, nullptr, &Callbacks::thread_main, this) == 0;
  owner_ = ::getpid();
  return has_thread_;
}

void* Callbacks::thread_main(void* callbacks) {
  static_cast<Callbacks*>(callbacks)->run();
  return nullptr;
}

void Callbacks::run() {
  std::vector<Pending> pending;
  for (;;) {
    // In this order: the wake-up that follows `stopping_` is then seen, or comes after `wakes` was read.
    const std::uint32_t wakes = client_.table().clients().prepare_wait(client_.slot());
    const bool stops = stopping_.load();
    take_new(pending);
    if (deliver(pending)) continue;
    if (stops && pending.empty()) return;
    if (stops) {
      Pending dropped = std::move(pending.back());
      pending.pop_back();
      client_.cancel(dropped.entry.ticket);
      dropped.function(Result(Failure{FailureKind::kNoWorker, 0}));
      continue;
    }
    if (!client_.table().clients().wait(client_.slot(), wakes, client_.longest_wait(sync::kForever)) && !pending.empty())
      client_.check_waiting_task(pending.front().entry.ticket);
  }
}

void Callbacks::take_new(std::vector<Pending>& pending) {
  std::vector<Pending> some;
  {
    const std::lock_guard guard(lock_);
    some.swap(new_);
  }
  for (Pending& one : some) {
    client_.table().entries().ask_for_wake(one.entry.ticket);
    pending.push_back(std::move(one));
  }
}

// Returns whether a task was over.
bool Callbacks::deliver(std::vector<Pending>& pending) {
  bool some = false;
  for (std::size_t i = 0; i < pending.size();) {
    if (!client_.is_over(pending[i].entry.ticket) && !client_.pool_is_gone()) {
      ++i;
      continue;
    }
    some = true;
    Pending over = std::exchange(pending[i], std::move(pending.back()));
    pending.pop_back();
    over.function(client_.get(std::move(over.entry)));
  }
  return some;
}

}  // namespace freehold::process
