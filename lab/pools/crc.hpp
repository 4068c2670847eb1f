// SPDX-License-Identifier: MIT
// Article 1's experiment. Half of the threads take a buffer from the pool, fill it with random bytes, write their checksum
// and return it. The others take a buffer, compare its checksum and return it, four times as often (Job::reads). If two
// threads held the same buffer, its checksum is wrong.
#pragma once
#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <thread>

#include "lab/pools/loops.hpp"

namespace freehold::lab::pools {

// A pool's slot as a buffer. While it is free, its first 16 bytes belong to the pool. A pool may use the other bytes, too;
// fill_all() finds that out before the test.
class CrcBuffer {
 public:
  CrcBuffer(void* slot, std::uint32_t bytes) : slot_(static_cast<unsigned char*>(slot)), bytes_(bytes) {}

  void write(std::uint64_t& random) {
    for (std::uint32_t i = 0; i < bytes_; i += sizeof random) {
      random ^= random << 13;
      random ^= random >> 7;
      random ^= random << 17;
      std::memcpy(payload() + i, &random, std::min<std::size_t>(sizeof random, bytes_ - i));
    }
    const std::uint32_t header[] = {kMark, sum()};
    std::memcpy(slot_ + kHeaderAt, header, sizeof header);
  }
  // Returns whether the buffer is unchanged. Always computes the sum, because that is the work of the test.
  [[nodiscard]] bool is_whole() const {
    std::uint32_t header[2];
    std::memcpy(header, slot_ + kHeaderAt, sizeof header);
    return sum() == header[1] && header[0] == kMark;
  }

 private:
  static constexpr std::uint32_t kMark = 0x43524332;
  static constexpr std::size_t kHeaderAt = 16;
  static_assert(kHeaderAt + 2 * sizeof(std::uint32_t) == kCrcHeader);

  [[nodiscard]] unsigned char* payload() const { return slot_ + kCrcHeader; }
  [[nodiscard]] std::uint32_t sum() const { return static_cast<std::uint32_t>(::crc32(0, payload(), bytes_)); }

  unsigned char* slot_;
  std::uint32_t bytes_;
};

// Writes every buffer once that the calling thread finds. Returns whether the pool leaves the contents of free buffers
// alone.
template <class P>
bool fill_found(P& pool, const Job& job, std::size_t slots) {
  std::vector<void*> held;
  std::uint64_t random = 1;
  for (void* slot = nullptr; held.size() < slots && (slot = pool.acquire()) != nullptr;) {
    CrcBuffer(slot, job.slot_bytes).write(random);
    held.push_back(slot);
  }
  for (void* const slot : held) pool.release(slot);
  bool whole = true;
  held.clear();
  for (void* slot = nullptr; held.size() < slots && (slot = pool.acquire()) != nullptr;) {
    whole &= CrcBuffer(slot, job.slot_bytes).is_whole();
    held.push_back(slot);
  }
  for (void* const slot : held) pool.release(slot);
  return whole;
}
// Writes every buffer. Where a thread finds the buffers of one shard only, as many threads do it.
template <class P>
bool fill_all(P& pool, const Job& job, std::size_t slots) {
  unsigned threads = 1;
  if constexpr (requires { requires !P::kAsksNeighbours; }) threads = pool.shards();
  bool whole = true;
  for (; threads > 0; --threads) std::thread([&] { whole &= fill_found(pool, job, slots); }).join();
  return whole;
}

template <class P>
[[gnu::flatten, gnu::noinline]] void write_and_read(P& pool, const Job& job, GroupWorker& worker, Share& share,
                                                    bool comparable) {
  std::uint64_t random = 88172645463325252 + worker.index();
  const bool writes = is_writer(worker.index());
  repeat(job, job.operations * (writes ? 1 : job.reads), worker, share, [&](std::uint64_t) {
    void* const slot = acquire_surely(pool, share.failures);
    CrcBuffer buffer(slot, job.slot_bytes);
    if (writes)
      buffer.write(random);
    else
      share.correct &= buffer.is_whole() || !comparable;
    pool.release(slot);
  });
}

}  // namespace freehold::lab::pools
