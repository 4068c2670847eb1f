// SPDX-License-Identifier: MIT
#include "sim/coherence.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

namespace freehold::sim {
namespace {

constexpr unsigned kMaxHeld = 256;

// The workloads of pools, on every core.
class PoolWorkload {
 public:
  PoolWorkload(const CoherenceOptions& options, const PoolCalls& calls)
      : options_(options),
        calls_(calls),
        cores_(options.cores, options.quantum),
        mailboxes_(options.cores),
        warm_(options.cores),
        done_(options.cores) {}

  CoherenceCount run() {
    cores_.run([this](unsigned core) {
      work(core, options_.warm_up);
      warm_[core] = cores_.tally(core);
      work(core, options_.pairs);
      done_[core] = cores_.tally(core);
    });
    CoherenceCount sum;
    for (unsigned i = 0; i < options_.cores && i < options_.counted; ++i) {
      const Tally tally = done_[i] - warm_[i];
      if (options_.workload != Workload::kOneWay || is_acquirer(i)) sum.pairs += options_.pairs;
      sum.accesses += tally.accesses;
      sum.misses += tally.misses;
      sum.cold += tally.first + tally.fetched;
    }
    sum.lines_with_company = cores_.directory().lines_on_both_sides_of(options_.counted);
    return sum;
  }

 private:
  void work(unsigned me, unsigned pairs) {
    switch (options_.workload) {
      case Workload::kOwnSlots: return own_slots(pairs);
      case Workload::kExchange: return exchange(me, pairs);
      case Workload::kOneWay: return one_way(me, pairs);
    }
  }

  [[nodiscard]] void* acquire() {
    for (;;) {
      if (void* const slot = calls_.acquire(calls_.pool); slot != nullptr) return slot;
      cores_.next();
    }
  }
  void release(void* slot) {
    calls_.release(calls_.pool, slot);
    cores_.progress();
  }

  void own_slots(unsigned pairs) {
    void* slots[kMaxHeld];
    for (unsigned done = 0; done < pairs;) {
      const unsigned n = std::min(options_.held, pairs - done);
      for (unsigned i = 0; i < n; ++i) slots[i] = acquire();
      for (unsigned i = 0; i < n; ++i) release(slots[i]);
      done += n;
    }
  }

  void one_way(unsigned me, unsigned pairs) {
    if (options_.cores == 1) return own_slots(pairs);
    void*& box = mailboxes_[me | 1];  // the box of the one that releases
    for (unsigned done = 0; done < pairs; ++done) {
      if (is_acquirer(me)) {
        void* const slot = acquire();
        while (box != nullptr) cores_.next();
        box = slot;
      } else {
        while (box == nullptr) cores_.next();
        release(std::exchange(box, nullptr));
      }
    }
  }
  [[nodiscard]] static bool is_acquirer(unsigned core) noexcept { return core % 2 == 0; }

  // The mailboxes are not the pool's: they cost nothing.
  void exchange(unsigned me, unsigned pairs) {
    void*& his = mailboxes_[(me + 1) % options_.cores];
    for (unsigned done = 0; done < pairs; ++done) {
      void* const slot = acquire();
      while (his != nullptr) cores_.next();
      his = slot;
      while (mailboxes_[me] == nullptr) cores_.next();
      release(std::exchange(mailboxes_[me], nullptr));
    }
  }

  const CoherenceOptions& options_;
  const PoolCalls& calls_;
  Cores cores_;
  std::vector<void*> mailboxes_;
  std::vector<Tally> warm_, done_;  // at the end of the warm-up, and of the last pair
};

}  // namespace

CoherenceCount count_misses(const CoherenceOptions& options, const PoolCalls& calls) {
  if (options.held == 0 || options.held > kMaxHeld) throw std::invalid_argument("coherence: held slots out of range");
  if (options.workload == Workload::kOneWay && options.cores > 1 && options.cores % 2 != 0)
    throw std::invalid_argument("coherence: one way needs an even number of cores");
  return PoolWorkload(options, calls).run();
}

}  // namespace freehold::sim
