// SPDX-License-Identifier: MIT
// The timed loops, as templates over the pool. The compiler inlines acquire and release into each loop (flatten), as in a
// program that has one loop and one pool; no operation calls through a pointer. Each thread of the group runs the loop. It
// ends after the job's operations, or when time is up, which it checks between blocks of operations.
#pragma once
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "freehold/pool/memory.hpp"
#include "lab/experiment/batch_ring.hpp"
#include "lab/pools/shape.hpp"
#include "tools/support/worker_group.hpp"

namespace freehold::lab::pools {

// The work of one thread.
struct Share {
  std::uint64_t operations = 0;  // acquire/release pairs
  std::uint64_t failures = 0;    // acquires that found nothing
  bool correct = true;           // no slot had the stamp of another thread
  double scatter = 0;            // scatter of the slots that are live at the end; see Report
};

class Deadline {
 public:
  // 0: it never passes.
  explicit Deadline(std::uint32_t milliseconds) {
    if (milliseconds == 0) return;
    half_ = Clock::now() + std::chrono::microseconds(500) * milliseconds;
    end_ = half_ + std::chrono::microseconds(500) * milliseconds;
  }
  [[nodiscard]] bool is_half_passed() const { return Clock::now() >= half_; }
  [[nodiscard]] bool is_passed() const { return Clock::now() >= end_; }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point half_ = Clock::time_point::max();
  Clock::time_point end_ = Clock::time_point::max();
};

// Small enough that the slowest pool ends soon after the deadline, large enough that reading the clock costs nothing.
inline constexpr std::uint64_t kBlock = 2048;
// One slot in so many has its stamp checked. Checking all would add cache misses to the test of random order.
inline constexpr std::uint64_t kChecked = 64;

inline void stamp(void* slot, std::uint32_t value) noexcept { *static_cast<volatile std::uint32_t*>(slot) = value; }
[[nodiscard]] inline bool has_stamp(const void* slot, std::uint32_t value) noexcept {
  return *static_cast<const volatile std::uint32_t*>(slot) == value;
}
// Keeps the compiler from removing an unused slot.
inline void keep(void* slot) noexcept { asm volatile("" : : "r"(slot) : "memory"); }

template <class P>
[[gnu::noinline]] void* acquire_slow(P& pool, std::uint64_t& failures) {
  for (;;) {
    ++failures;
    ::sched_yield();
    if (void* const slot = pool.acquire(); slot != nullptr) return slot;
  }
}

// Repeats until there is a slot.
template <class P>
inline void* acquire_surely(P& pool, std::uint64_t& failures) {
  void* const slot = pool.acquire();
  return slot != nullptr ? slot : acquire_slow(pool, failures);
}

// Calls step(i) for i in 0 … operations-1, between start and finish.
template <class Step>
void repeat(const Job& job, std::uint64_t operations, GroupWorker& worker, Share& share, Step step) {
  worker.start();
  const Deadline deadline(job.milliseconds);
  do {
    const std::uint64_t end = std::min(share.operations + kBlock, operations);
    for (std::uint64_t i = share.operations; i < end; ++i) step(i);
    share.operations = end;
  } while (share.operations < operations && !deadline.is_passed());
  worker.finish();
}

// Test 1: a slot is released at once.
template <class P>
[[gnu::flatten, gnu::noinline]] void short_life(P& pool, const Job& job, GroupWorker& worker, Share& share) {
  repeat(job, job.operations, worker, share, [&](std::uint64_t i) {
    void* const slot = acquire_surely(pool, share.failures);
    stamp(slot, static_cast<std::uint32_t>(i));
    pool.release(slot);
  });
}

// The same without any use of the slot: the cost of the pair alone.
template <class P>
[[gnu::flatten, gnu::noinline]] void pair(P& pool, const Job& job, GroupWorker& worker, Share& share) {
  repeat(job, job.operations, worker, share, [&](std::uint64_t) {
    void* const slot = acquire_surely(pool, share.failures);
    keep(slot);
    pool.release(slot);
  });
}

// Up to `most` slots into `held`, fewer if there are no more or half of the time is over. Returns how many.
template <class P>
[[gnu::flatten, gnu::noinline]] std::uint64_t acquire_many(P& pool, void** held, std::uint64_t most,
                                                           std::uint32_t first_stamp, const Deadline& deadline,
                                                           Share& share) {
  std::uint64_t n = 0;
  while (n < most && (n == 0 || !deadline.is_half_passed())) {
    for (const std::uint64_t end = std::min(n + kBlock, most); n < end; ++n) {
      void* const slot = pool.acquire();
      if (slot == nullptr) {
        ++share.failures;
        return n;
      }
      stamp(slot, first_stamp + static_cast<std::uint32_t>(n));
      held[n] = slot;
    }
  }
  return n;
}

// In the order `at` gives, which visits 0…n-1 among others.
template <class P, class Order>
[[gnu::flatten, gnu::noinline]] void release_many(P& pool, void* const* held, std::uint64_t n, std::uint64_t entries,
                                                  std::uint32_t first_stamp, Order at, Share& share) {
  for (std::uint64_t i = 0; i < entries; ++i) {
    const std::uint64_t which = at(i);
    if (which >= n) continue;
    if (which % kChecked == 0) share.correct &= has_stamp(held[which], first_stamp + static_cast<std::uint32_t>(which));
    pool.release(held[which]);
  }
}

// Tests 2 and 3: all slots are acquired, then all are released, in the same order or in a random one.
template <class P>
void long_life(P& pool, const Job& job, GroupWorker& worker, Share& share) {
  const std::uint64_t batch = batch_of(job);
  const pool::ZeroedArray<void*> held(batch);
  std::fill_n(held.data(), batch, &share);  // its pages are there
  std::vector<std::uint32_t> order;
  if (job.test == Trial::kRandom) {
    order.resize(batch);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::shuffle(order, std::mt19937(worker.index()));
  }
  const std::uint32_t first_stamp = worker.index() << 27;
  worker.start();
  const Deadline deadline(job.milliseconds);
  do {
    const std::uint64_t most = std::min(batch, job.operations - share.operations);
    const std::uint64_t n = acquire_many(pool, held.data(), most, first_stamp, deadline, share);
    if (order.empty())
      release_many(pool, held.data(), n, n, first_stamp, [](std::uint64_t i) { return i; }, share);
    else
      release_many(pool, held.data(), n, batch, first_stamp, [&](std::uint64_t i) { return order[i]; }, share);
    share.operations += n;
    if (n == 0) ::sched_yield();
  } while (share.operations < job.operations && !deadline.is_passed());
  worker.finish();
}

// Slots that live for the same time, so that the oldest is replaced, or for times of chance.
template <class P>
[[gnu::flatten, gnu::noinline]] void replace(P& pool, const Job& job, GroupWorker& worker, Share& share) {
  std::vector<void*> live(live_of(job));
  for (void*& slot : live) slot = acquire_surely(pool, share.failures);
  std::minstd_rand random(1);
  repeat(job, job.operations, worker, share, [&](std::uint64_t i) {
    const std::uint64_t at = (job.test == Trial::kAlike ? i : random()) & (live.size() - 1);
    pool.release(live[at]);
    live[at] = acquire_surely(pool, share.failures);
    stamp(live[at], static_cast<std::uint32_t>(at));
  });
  share.scatter = scatter_of(live, job.slot_bytes);
}

using SlotRing = BatchRing<void*, kRingBatch>;

template <class P>
[[gnu::flatten, gnu::noinline]] void produce(P& pool, const Job& job, GroupWorker& worker, Share& share, SlotRing& ring) {
  worker.start();
  const Deadline deadline(job.milliseconds);
  do {
    for (std::uint64_t i = 0; i < kBlock / kRingBatch; ++i) {
      for (void*& slot : ring.next_to_fill()) {
        slot = acquire_surely(pool, share.failures);
        stamp(slot, worker.index());
      }
      ring.filled();
    }
    share.operations += kBlock;
  } while (share.operations < job.operations && !deadline.is_passed());
  ring.next_to_fill().fill(nullptr);
  ring.filled();
  worker.finish();
}

template <class P>
[[gnu::flatten, gnu::noinline]] void consume(P& pool, GroupWorker& worker, Share& share, SlotRing& ring) {
  worker.start();
  for (;;) {
    const SlotRing::Batch& batch = ring.next_to_empty();
    if (batch.front() == nullptr) break;
    share.correct &= has_stamp(batch.front(), worker.index() - 1);
    for (void* const slot : batch) pool.release(slot);
    ring.emptied();
  }
  worker.finish();
}

}  // namespace freehold::lab::pools
