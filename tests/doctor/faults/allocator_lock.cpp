// SPDX-License-Identifier: MIT
// Fault: one lock for the whole heap. The program follows the common advice to save memory with a single arena, so that
// threads that keep their blocks to themselves meet at the arena's lock.
// Two CPUs take, of the time on one: mild 1.7, severe 3.8, lists 2.7; with any allocator that has no such lock 0.5 to 0.7.
#include <malloc.h>

#include <memory>
#include <utility>

#include "tests/doctor/faults/fault.hpp"

namespace {

// Buffers of messages, larger than what a thread may cache: every call takes the lock.
void buffers(unsigned me, std::size_t rounds, std::size_t work) {
  fault::Random random(me);
  std::unique_ptr<char[]> held[64];
  for (std::size_t i = 0; i < rounds; ++i) {
    std::unique_ptr<char[]>& place = held[random() % 64];
    place.reset(new char[1100 + random() % 2000]);
    place[0] = 'x';
    fault::compute(work);
  }
}

struct Node {
  Node* next;
  char value[56];
};

// Lists are built and dropped: more nodes than a thread may cache, so most calls take the lock.
void lists(std::size_t rounds) {
  for (std::size_t i = 0; i < rounds; ++i) {
    Node* first = nullptr;
    for (unsigned n = 0; n < 1000; ++n) first = new Node{first, {}};
    while (first != nullptr) delete std::exchange(first, first->next);
  }
}

}  // namespace

int main(int count, char** words) {
  mallopt(M_ARENA_MAX, 1);
  return fault::run(count, words,
                    {{"mild", fault::each(1.2e6, [](unsigned me, std::size_t part) { buffers(me, part, 150); })},
                     {"severe", fault::each(1.5e6, [](unsigned me, std::size_t part) { buffers(me, part, 0); })},
                     {"lists", fault::each(12e3, [](unsigned, std::size_t part) { lists(part); })}});
}
