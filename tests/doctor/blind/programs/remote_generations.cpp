// SPDX-License-Identifier: MIT
// Does: rounds with a barrier between: each thread destroys the list of nodes that its neighbour built in the round before,
// while it builds a new one.
// Why:  nodes are freed one by one into the neighbour's arena in which that one allocates at the
// same time. The barrier is passed once for 100,000 nodes.
// Case remote_generations: {n} 500
//   Truth: remote-frees
//   Right: remote-frees allocator-lock page-faults mixed+
//   Seen: strace -f -c of 20 rounds: 3852 mprotect: freeing elsewhere also makes arenas shrink and grow again, so page
//       faults are right, too
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

struct Node {
  Node* next;
  long payload[7];
};

constexpr long kNodes = 200'000;

// Destroys `old` while it builds a new list of `nodes`.
Node* renew(Node* old, long nodes) {
  Node* fresh = nullptr;
  for (long i = 0; i < nodes; ++i) {
    fresh = new Node{fresh, {i}};
    if (old) {
      Node* next = old->next;
      delete old;
      old = next;
    }
  }
  return fresh;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int threads = std::atoi(argv[1]);
  const int rounds = std::atoi(argv[2]);
  std::vector<Node*> lists(threads), fresh(threads);
  std::barrier<> barrier(threads);
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i)
    running.emplace_back([&, i] {
      for (int round = 0; round < rounds; ++round) {
        fresh[i] = renew(lists[(i + 1) % threads], kNodes / threads);
        barrier.arrive_and_wait();
        lists[i] = fresh[i];
        barrier.arrive_and_wait();
      }
    });
  for (auto& thread : running) thread.join();
  std::printf("%d rounds of %ld nodes\n", rounds, kNodes);
}
