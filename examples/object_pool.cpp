// SPDX-License-Identifier: MIT
// A pool of messages between two threads: made in one, ended in the other.
#include <cstdio>
#include <deque>
#include <mutex>
#include <thread>

#include "freehold/pool.hpp"

struct Message {
  explicit Message(long number) : number(number) {}
  long number;
  char text[48] = {};
};
using Messages = freehold::pool::ObjectPool<Message>;

int main() {
  constexpr long kMessages = 100'000;
  Messages messages(1000);  // at most a thousand on their way
  std::mutex mutex;
  std::deque<Messages::Handle> queue;
  long sum = 0;
  std::thread consumer([&] {
    for (long received = 0; received < kMessages;) {
      Messages::Handle message;
      {
        const std::lock_guard guard(mutex);
        if (queue.empty()) continue;
        message = std::move(queue.front());
        queue.pop_front();
      }
      sum += message->number;
      ++received;
    }  // the handle ends here: the slot is free again
  });
  for (long number = 1; number <= kMessages;) {
    Messages::Handle message = messages.make(number);
    if (message == nullptr) {  // all thousand are on their way
      std::this_thread::yield();
      continue;
    }
    ++number;
    const std::lock_guard guard(mutex);
    queue.push_back(std::move(message));
  }
  consumer.join();
  std::printf("%ld messages, sum %ld\n", kMessages, sum);
}
