// SPDX-License-Identifier: MIT
// Every thread has a pool of packets; a packet is freed by another thread than its pool's, which puts it on the pool's
// return stack under a mutex. No malloc once the pools are filled. People replaced the pool's ring, and gave packets back in
// batches, since each return took the lock.
#include <atomic>
#include <mutex>
#include <utility>

#include "tests/doctor/corpus/programs/rebuilt.hpp"

namespace {
constexpr unsigned kPackets = 512;
struct Packet {
  Packet* next = nullptr;
  unsigned home = 0;
  unsigned char data[240] = {};
};
struct alignas(64) Pool {
  std::mutex mutex;
  Packet* returned = nullptr;
  alignas(64) Packet* own = nullptr;
  std::vector<Packet> packets = std::vector<Packet>(kPackets);
};
struct alignas(64) Queue {
  std::mutex mutex;
  Packet* first = nullptr;
};
}  // namespace

int main(int argc, char** argv) {
  const auto threads = static_cast<unsigned>(argc > 1 ? std::atoi(argv[1]) : 2);
  std::vector<Pool> pools(threads);
  std::vector<Queue> queues(threads);
  for (unsigned home = 0; home < threads; ++home)
    for (Packet& packet : pools[home].packets) packet.home = home, packet.next = std::exchange(pools[home].own, &packet);
  std::atomic<unsigned> receiving = threads;
  rebuilt::in_threads(argc, argv, [&](unsigned me, long received) {
    const auto handle = [&] {
      Packet* packet = nullptr;
      {
        const std::lock_guard lock(queues[me].mutex);
        packet = std::exchange(queues[me].first, nullptr);
      }
      while (packet != nullptr) {
        Packet* const next = packet->next;
        unsigned sum = 0;
        for (const unsigned char byte : packet->data) sum += byte;
        rebuilt::keep(sum);
        Pool& pool = pools[packet->home];
        const std::lock_guard lock(pool.mutex);
        packet->next = std::exchange(pool.returned, packet);
        packet = next;
      }
    };
    for (long i = 0; i < received;) {
      if (pools[me].own == nullptr) {
        const std::lock_guard lock(pools[me].mutex);
        pools[me].own = std::exchange(pools[me].returned, nullptr);
      }
      if (Packet* const packet = pools[me].own; packet != nullptr) {
        pools[me].own = packet->next;
        packet->data[i % 240] = static_cast<unsigned char>(i);
        Queue& to = queues[(me + 1) % threads];
        const std::lock_guard lock(to.mutex);
        packet->next = std::exchange(to.first, packet);
        ++i;
      } else {
        std::this_thread::yield();
      }
      handle();
    }
    for (--receiving; receiving > 0; std::this_thread::yield()) handle();
  });
}
