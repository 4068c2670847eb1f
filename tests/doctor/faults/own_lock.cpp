// SPDX-License-Identifier: MIT
// Fault: the program's own mutex. Most of the work is done while it is held.
// Two CPUs take 1.1 to 1.6 times as long as one, with every allocator.
#include <deque>
#include <map>
#include <mutex>
#include <string>

#include "tests/doctor/faults/fault.hpp"

namespace {

std::mutex g_lock;

void locked_work(std::size_t rounds, std::size_t inside, std::size_t outside) {
  for (std::size_t i = 0; i < rounds; ++i) {
    {
      const std::lock_guard guard(g_lock);
      fault::compute(inside);
    }
    fault::compute(outside);
  }
}

// A table behind one lock, whose entries come and go: there is an allocation inside the lock, which is not at fault.
void table(unsigned me, std::size_t rounds) {
  static std::map<std::string, std::size_t> entries;
  fault::Random random(me);
  for (std::size_t i = 0; i < rounds; ++i) {
    const std::string key = "an entry of the table, number " + std::to_string(random() % 50'000);
    const std::lock_guard guard(g_lock);
    if (const auto [place, is_new] = entries.try_emplace(key, i); !is_new && i % 8 == 0) entries.erase(place);
  }
}

// Messages go through one queue, which sums them up under its lock. Every message is freed by another thread than the one
// that made it, and that is not at fault either.
void queue(std::size_t rounds) {
  static std::deque<std::string> messages;
  for (std::size_t i = 0; i < rounds; ++i) {
    std::string message(100 + i % 100, 'x');
    const std::lock_guard guard(g_lock);
    messages.push_back(std::move(message));
    fault::compute(1'500);
    if (messages.size() > 1'000) messages.pop_front();
  }
}

}  // namespace

int main(int count, char** words) {
  return fault::run(count, words,
                    {{"mild", fault::each(40e3, [](unsigned, std::size_t part) { locked_work(part, 9'000, 3'000); })},
                     {"severe", fault::each(400e3, [](unsigned, std::size_t part) { locked_work(part, 1'000, 50); })},
                     {"table", fault::each(1e6, table)},
                     {"queue", fault::each(250e3, [](unsigned, std::size_t part) { queue(part); })}});
}
