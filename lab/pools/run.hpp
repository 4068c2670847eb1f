// SPDX-License-Identifier: MIT
// Does one job on one type of pool: makes the pool, brings it into its context, runs the test, fills the report in.
#pragma once
#include <algorithm>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "lab/experiment/memory.hpp"
#include "lab/pools/crc.hpp"
#include "lab/pools/loops.hpp"
#include "lab/strategies/system_new.hpp"

namespace freehold::lab::pools {

// Returns whether acquiring takes memory from malloc. Other pools have all of theirs from the start.
template <class P, class Make>
bool takes_from_heap(const Make& make, const Job& job) {
  constexpr std::size_t kTried = 64;
  P pool = make({.slots = 16 * kTried, .slot_bytes = job.slot_bytes}, job);
  void* slots[kTried];
  const std::size_t before = heap_bytes();
  for (void*& slot : slots) slot = pool.acquire();
  const bool takes = heap_bytes() >= before + kTried * job.slot_bytes;
  for (void* const slot : slots) {
    if (slot != nullptr) pool.release(slot);
  }
  return takes;
}

// Each thread of the baseline has separate slots.
template <class P>
inline constexpr bool kThreadsShare = true;
template <class P>
  requires requires { P::kThreadsShare; }
inline constexpr bool kThreadsShare<P> = P::kThreadsShare;

// Brings the pool into the job's context. Of a fresh pool nothing was ever acquired. For the others all slots are acquired,
// then those released that should be free; a pool with a cursor has it at the start again.
template <class P>
void prepare(P& pool, const Job& job, std::size_t slots) {
  if (job.context == Context::kFresh || pool.capacity() == pool::kNoLimit) return;
  const pool::ZeroedArray<void*> held(slots);
  std::size_t n = 0;
  while (n < slots && (held[n] = pool.acquire()) != nullptr) stamp(held[n++], ~0U);
  if (!std::is_sorted(held.data(), held.data() + n)) std::sort(held.data(), held.data() + n);
  for (std::size_t i = 0; i < n; ++i) {
    if (!is_used(job.context, i, n)) pool.release(held[i]);
  }
}

// The default allocator has no slots that could be in use: each thread of the test keeps blocks.
template <class P>
void keep_blocks(P& pool, const Job& job) {
  if (pool.capacity() != pool::kNoLimit) return;
  for (std::uint64_t i = 0; i < kept_of(job); ++i) {
    void* const block = pool.acquire();
    if (block == nullptr) return;
    stamp(block, ~0U);
  }
}

struct alignas(64) PaddedShare {
  Share share;
};

template <class P>
void run_test(P& pool, const Job& job, GroupWorker& worker, Share& share, std::vector<std::unique_ptr<SlotRing>>& rings,
              bool comparable) {
  switch (job.test) {
    case Trial::kShort: return short_life(pool, job, worker, share);
    case Trial::kPair: return pair(pool, job, worker, share);
    case Trial::kLong:
    case Trial::kSingle:
    case Trial::kRandom: return long_life(pool, job, worker, share);
    case Trial::kAlike:
    case Trial::kMixed: return replace(pool, job, worker, share);
    case Trial::kCrc: return write_and_read(pool, job, worker, share, comparable);
    case Trial::kRing: {
      SlotRing& ring = *rings[worker.index() / 2];
      return worker.index() % 2 == 0 ? produce(pool, job, worker, share, ring) : consume(pool, worker, share, ring);
    }
  }
}

// Does the job on the pool that make(shape, job) returns. test(pool, worker, share, rings, comparable) is one thread's part.
template <class P>
Report run_tests(const Job& job, const auto& make, const auto& test) {
  const pool::PoolShape shape = shape_of(job);
  const bool from_heap = takes_from_heap<P>(make, job);
  if (from_heap) keep_heap();
  P pool = make(shape, job);
  make_resident(4 * shape.slots * std::max<std::size_t>(shape.slot_bytes, 16) + (std::size_t{64} << 20));
  bool comparable = false;
  // A separate thread runs it: its end returns what the pool cached for it.
  std::thread([&] {
    if (job.test != Trial::kCrc)
      prepare(pool, job, shape.slots);
    else if constexpr (kThreadsShare<P>)
      comparable = fill_all(pool, job, shape.slots) && pool.capacity() != pool::kNoLimit;
  }).join();
  std::vector<std::unique_ptr<SlotRing>> rings;
  if (job.test == Trial::kRing) {
    for (std::uint32_t i = 0; i < job.threads / 2; ++i) rings.push_back(std::make_unique<SlotRing>());
  }
  std::vector<PaddedShare> shares(job.threads);
  const auto counted = [&] {
    if constexpr (requires { pool.contention(); }) return pool.contention();
    return sync::Contention{};
  };
  const sync::Contention before = counted();
  Report report;
  const Body body = [&](GroupWorker& worker) {
    if (from_heap) warm_heap((batch_of(job) + kept_of(job)) * (shape.slot_bytes + 32));
    keep_blocks(pool, job);
    Share share;
    test(pool, worker, share, rings, comparable);
    shares[worker.index()].share = share;
    return share.correct;
  };
  run_group(Mode::kThreads, job.threads, body, report);
  const sync::Contention after = counted();
  for (const PaddedShare& line : shares) {
    report.operations += line.share.operations;
    report.failures += line.share.failures;
    report.scatter = std::max(report.scatter, line.share.scatter);
  }
  report.conflicts = after.retries + after.waits - before.retries - before.waits;
  return report;
}

// `make(shape, job)` returns the pool. Pre: a ring has an even number of threads.
template <class P>
Report run_on(const Job& job, const auto& make) {
  return run_tests<P>(job, make, [&job](P& pool, auto&... rest) { run_test(pool, job, rest...); });
}

// Trial::kCrc only, so that the compiler makes only its loop. Throws std::runtime_error on another test.
template <class P>
Report run_crc_on(const Job& job, const auto& make) {
  if (job.test != Trial::kCrc) throw std::runtime_error("this pool does the test crc only");
  return run_tests<P>(job, make, [&job](P& pool, GroupWorker& worker, Share& share, auto&, bool& comparable) {
    write_and_read(pool, job, worker, share, comparable);
  });
}

// The usual `make`.
template <class P>
inline constexpr auto make_plain = [](const pool::PoolShape& shape, const Job&) { return P(shape); };

}  // namespace freehold::lab::pools
