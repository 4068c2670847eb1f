// SPDX-License-Identifier: MIT
// Fault: an allocator of the program's own behind a mutex of the program's own: a free list, or operator new and delete.
// Threads wait for that lock; the malloc below it is called seldom, or only while the lock is held.
#include <cstdlib>
#include <mutex>
#include <new>

#include "tests/doctor/faults/fault.hpp"

namespace {

std::mutex g_lock;
bool g_locks_new = false;

struct Node {
  Node* next;
  char payload[56];
};
Node* g_free = nullptr;

Node* take() {
  const std::lock_guard guard(g_lock);
  if (g_free == nullptr) return static_cast<Node*>(std::malloc(sizeof(Node)));
  Node* const node = g_free;
  g_free = node->next;
  return node;
}

void give(Node* node) {
  const std::lock_guard guard(g_lock);
  node->next = g_free;
  g_free = node;
}

void free_list(std::size_t rounds) {
  Node* held[8] = {};
  for (std::size_t i = 0; i < rounds; ++i) {
    Node*& place = held[i % 8];
    if (place != nullptr) give(place);
    place = take();
    place->payload[0] = static_cast<char>(i);
    fault::compute(20);
  }
  for (Node* node : held)
    if (node != nullptr) give(node);
}

void objects(std::size_t rounds) {
  int* held[8] = {};
  for (std::size_t i = 0; i < rounds; ++i) {
    int*& place = held[i % 8];
    delete place;
    place = new int(static_cast<int>(i));
    fault::compute(20);
  }
  for (int* object : held) delete object;
}

}  // namespace

void* operator new(std::size_t bytes) {
  std::unique_lock guard(g_lock, std::defer_lock);
  if (g_locks_new) guard.lock();
  if (void* const block = std::malloc(bytes)) return block;
  throw std::bad_alloc();
}
void operator delete(void* block) noexcept {
  std::unique_lock guard(g_lock, std::defer_lock);
  if (g_locks_new) guard.lock();
  std::free(block);
}
void operator delete(void* block, std::size_t) noexcept { operator delete(block); }

int main(int count, char** words) {
  return fault::run(count, words,
                    {{"free_list", fault::each(4e6, [](unsigned, std::size_t part) { free_list(part); })},
                     {"operator_new", [](const auto& options) {
                        g_locks_new = true;
                        fault::each(4e6, [](unsigned, std::size_t part) { objects(part); })(options);
                      }}});
}
