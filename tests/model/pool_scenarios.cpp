// SPDX-License-Identifier: MIT
#include "tests/model/pool_scenarios.hpp"

#include <algorithm>
#include <cstddef>
#include <set>

namespace freehold::model {
namespace {

using sim::SimAtomics;

constexpr unsigned kMostCpus = 2;  // that the scenarios run on, and shards

// The links that an intrusive pool keeps in free slots lie at their start.
struct SlotContents {
  std::byte links[16];
  SimAtomics::var<unsigned> stamp;
};

// A pool, and what is known about its slots.
class World {
 public:
  World(const Subject& subject, std::size_t slots)
      : subject_(subject),
        slots_(slots),
        pool_(subject.make({.slots = slots, .slot_bytes = sizeof(SlotContents), .shards = kMostCpus})) {}

  // ---- in threads

  // A slot, stamped; null: none was found.
  void* take() noexcept {
    void* const slot = pool_->acquire();
    if (slot != nullptr) stamp(slot).store(mark());
    return slot;
  }
  // The same where at least one slot is free all the time.
  void* take_surely() noexcept {
    void* const slot = take();
    if (subject_.finds_last) SIM_CHECK(slot != nullptr && "a slot was free, and not found");
    return slot;
  }
  void give(void* slot) noexcept {
    if (slot == nullptr) return;
    SIM_CHECK(stamp(slot).load() == mark());
    stamp(slot).store(0);
    pool_->release(slot);
  }
  // A slot that another thread has stamped and handed on.
  void give_anothers(void* slot) noexcept {
    stamp(slot).store(0);
    pool_->release(slot);
  }

  // ---- outside of them

  std::vector<void*> take_all_at_first() {
    std::vector<void*> all;
    for (unsigned cpu = 0; cpu < kMostCpus; ++cpu) {
      sim::set_outside_cpu(cpu);
      while (all.size() < slots_) {
        void* const slot = pool_->acquire();
        if (slot == nullptr) break;
        all.push_back(slot);
      }
    }
    sim::set_outside_cpu(0);
    SIM_CHECK(all.size() == slots_);
    std::sort(all.begin(), all.end());
    return all;
  }
  void give_at_first(void* slot) { pool_->release(slot); }
  // The slots that the set-up has put by go back, its thread ends.
  void begin() {
    pool_->flush();
    sim::end_outside_thread();
  }

  // When the threads have ended: `held` are still out, everything else is found, and nothing twice.
  // A pool that keeps something for a thread gives it back when the thread ends.
  void check_at_rest(const std::vector<void*>& held) {
    SIM_CHECK(pool_->invariants_hold());
    std::set<void*> known;
    for (void* slot : held)
      if (slot != nullptr) SIM_CHECK(known.insert(slot).second && "a slot was handed out twice");
    // Slots that lie by for a CPU are found there.
    for (unsigned cpu = 0; cpu < kMostCpus; ++cpu) {
      sim::set_outside_cpu(cpu);
      while (known.size() <= slots_) {
        void* const slot = pool_->acquire();
        if (slot == nullptr) break;
        SIM_CHECK(known.insert(slot).second && "a slot was handed out twice");
      }
    }
    SIM_CHECK(known.size() <= slots_ && "more slots than there are");
    SIM_CHECK(known.size() == slots_ && "a slot is lost");
    for (void* slot : known) pool_->release(slot);
  }

 private:
  static unsigned mark() noexcept { return sim::thread_index() + 1; }
  static SimAtomics::var<unsigned>& stamp(void* slot) noexcept { return static_cast<SlotContents*>(slot)->stamp; }

  const Subject& subject_;
  std::size_t slots_;
  std::unique_ptr<AnyPool> pool_;
};

// Each of some threads takes and gives back, a number of times.
template <unsigned kThreads, unsigned kSlots, unsigned kRounds>
void pairs(sim::Execution& run, const Subject& subject) {
  World world(subject, kSlots);
  world.begin();
  for (unsigned i = 0; i < kThreads; ++i) {
    run.spawn([&] {
      for (unsigned round = 0; round < kRounds; ++round) world.give(kSlots >= kThreads ? world.take_surely() : world.take());
    });
  }
  run.check([&] { world.check_at_rest({}); });
}

// Each takes two, of three; the first that was taken goes back first.
void two_each(sim::Execution& run, const Subject& subject) {
  World world(subject, 3);
  world.begin();
  for (unsigned i = 0; i < 2; ++i) {
    run.spawn([&] {
      void* const first = world.take_surely();
      void* const second = world.take();
      world.give(first);
      world.give(second);
    });
  }
  run.check([&] { world.check_at_rest({}); });
}

// One thread holds the only slot, gives it back, and says so: then it must be found. The slot is released by another thread
// than the one that acquired it.
void last_slot(sim::Execution& run, const Subject& subject) {
  World world(subject, 1);
  void* const only = world.take_all_at_first().front();
  world.begin();
  SimAtomics::atomic<unsigned> told{0};
  run.spawn([&, only] {
    world.give_anothers(only);
    told.store(1, std::memory_order_release);
  });
  run.spawn([&] {
    world.give(world.take());
    if (told.load(std::memory_order_acquire) == 1) world.give(world.take_surely());
  });
  run.check([&] { world.check_at_rest({}); });
}

// Threads come and go: what two of them leave behind, a third finds, and can use for its own.
void two_generations(sim::Execution& run, const Subject& subject) {
  World world(subject, 3);
  world.begin();
  for (unsigned i = 0; i < 2; ++i) run.spawn([&] { world.give(world.take_surely()); });
  run.check([&] { world.check_at_rest({}); });
  world.begin();
  run.spawn([&] {
    void* const slots[3] = {world.take_surely(), world.take_surely(), world.take_surely()};
    for (void* slot : slots) world.give(slot);
  });
  run.check([&] { world.check_at_rest({}); });
}

// The same between two threads that search: a slot that the one gives back is what the other finds, or a third.
void last_slot_of_three(sim::Execution& run, const Subject& subject) {
  World world(subject, 2);
  const std::vector<void*> all = world.take_all_at_first();
  world.begin();
  void* found[2] = {};
  for (unsigned i = 0; i < 2; ++i) run.spawn([&, slot = all[i]] { world.give_anothers(slot); });
  run.spawn([&] {
    for (void*& mine : found) mine = world.take();
  });
  run.check([&] { world.check_at_rest({found[0], found[1]}); });
}

// A slot goes from thread to thread and is released by the second, while the first comes back for one.
void handed_on(sim::Execution& run, const Subject& subject) {
  World world(subject, 2);
  world.begin();
  SimAtomics::atomic<void*> mailbox{nullptr};
  run.spawn([&] {
    void* const slot = world.take_surely();
    if (slot == nullptr) return;
    mailbox.store(slot, std::memory_order_release);
    world.give(world.take());  // perhaps none: one is in the mailbox, one with the other thread
  });
  run.spawn([&] {
    void* const slot = mailbox.exchange(nullptr, std::memory_order_acq_rel);
    if (slot != nullptr) world.give_anothers(slot);
    world.give(world.take());
  });
  run.check([&] { world.check_at_rest({mailbox.load(std::memory_order_relaxed)}); });
}

// Sixty-six slots, of which the two on either side of the border between two words are free; each thread takes one, or gives
// one back there.
template <unsigned kTakers, unsigned kGivers>
void border(sim::Execution& run, const Subject& subject) {
  World world(subject, 66);
  std::vector<void*> all = world.take_all_at_first();
  std::vector<void*> held(all.begin(), all.begin() + 63);
  held.push_back(all[65]);
  world.give_at_first(all[63]);
  world.give_at_first(all[64]);
  world.begin();
  for (unsigned i = 0; i < kTakers; ++i) run.spawn([&] { world.give(world.take_surely()); });
  for (unsigned i = 0; i < kGivers; ++i) {
    void* const slot = held.back();
    held.pop_back();
    run.spawn([&, slot] { world.give_anothers(slot); });
  }
  run.check([&] { world.check_at_rest(held); });
}

// One slot of each of two words goes back, while another thread finds what there is.
void both_words(sim::Execution& run, const Subject& subject) {
  World world(subject, 66);
  std::vector<void*> held = world.take_all_at_first();
  void* const low = held[5];
  void* const high = held[64];
  std::erase(held, low);
  std::erase(held, high);
  world.begin();
  void* found[2] = {};
  run.spawn([&, low, high] {
    world.give_anothers(low);
    world.give_anothers(high);
  });
  run.spawn([&] {
    for (void*& mine : found) mine = world.take();
  });
  run.check([&] {
    held.insert(held.end(), {found[0], found[1]});
    world.check_at_rest(held);
  });
}

// Four threads, three rounds, each holding up to two.
template <unsigned kSlots>
void many(sim::Execution& run, const Subject& subject) {
  World world(subject, kSlots);
  world.begin();
  for (unsigned i = 0; i < 4; ++i) {
    run.spawn([&] {
      for (unsigned round = 0; round < 3; ++round) {
        void* const first = kSlots >= 8 ? world.take_surely() : world.take();
        void* const second = kSlots >= 8 ? world.take_surely() : world.take();
        world.give(first);
        world.give(second);
      }
    });
  }
  run.check([&] { world.check_at_rest({}); });
}

// Slots go round: each thread gives back what the one before it took.
void ring(sim::Execution& run, const Subject& subject) {
  constexpr unsigned kThreads = 4;
  World world(subject, 5);
  world.begin();
  SimAtomics::atomic<void*> mailboxes[kThreads]{};
  for (unsigned i = 0; i < kThreads; ++i) {
    run.spawn([&, i] {
      for (unsigned round = 0; round < 2; ++round) {
        if (void* const mine = world.take(); mine != nullptr)
          if (void* const former = mailboxes[i].exchange(mine, std::memory_order_acq_rel); former != nullptr)
            world.give_anothers(former);
        if (void* const anothers = mailboxes[(i + 1) % kThreads].exchange(nullptr, std::memory_order_acq_rel);
            anothers != nullptr)
          world.give_anothers(anothers);
      }
    });
  }
  run.check([&] {
    std::vector<void*> held;
    for (const auto& mailbox : mailboxes) held.push_back(mailbox.load(std::memory_order_relaxed));
    world.check_at_rest(held);
  });
}

// The words' border, crowded.
void crowded_border(sim::Execution& run, const Subject& subject) {
  World world(subject, 130);
  std::vector<void*> all = world.take_all_at_first();
  std::vector<void*> held;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i == 62 || i == 63 || i == 64 || i == 128)
      world.give_at_first(all[i]);
    else
      held.push_back(all[i]);
  }
  world.begin();
  void* found[5] = {};
  for (unsigned i = 0; i < 5; ++i) {
    run.spawn([&, i] {
      world.give(world.take());
      found[i] = world.take();
    });
  }
  run.check([&] {
    held.insert(held.end(), std::begin(found), std::end(found));
    world.check_at_rest(held);
  });
}

sim::Options options_of(const Scenario& scenario, const Subject& subject, const Effort& effort) {
  // A thread that waits for a lock sleeps at once: the lock has its own model (mutex_model.cpp).
  return {.name = subject.name + "/" + scenario.name,
          .stale = effort.stale,
          .decide = sim::Decide::kAlternative,
          .print = effort.print};
}

// Each thread runs on a separate CPU; and, if the pool asks for the CPU, on fewer, from `fewest` on.
sim::Result on_all_cpus(const Scenario& scenario, const Subject& subject, sim::Options options, unsigned fewest) {
  const auto body = [&](sim::Execution& run) { scenario.body(run, subject); };
  sim::Result sum = sim::explore(options, body);
  const std::string name = options.name;
  for (options.cpus = fewest; sum.asked_cpu && sum.ok() && options.cpus <= kMostCpus; ++options.cpus) {
    if (options.cpus == 2) --options.preemptions;  // moves count as such, and there are many
    options.name = name + ", CPUs: " + std::to_string(options.cpus);
    sim::Result result = sim::explore(options, body);
    result.executions += sum.executions;
    sum = std::move(result);
  }
  return sum;
}

}  // namespace

const std::vector<Scenario>& small_scenarios() {
  static const std::vector<Scenario> scenarios = {
      {"2 threads, 1 slot", 2, pairs<2, 1, 2>},
      {"2 threads, 2 slots", 2, pairs<2, 2, 2>},
      {"2 threads, the last slot", 2, last_slot},
      {"2 threads, 2 each of 3", 2, two_each},
      {"2 threads, then another", 2, two_generations},
      {"2 threads, handed on", 2, handed_on},
      {"2 threads, border", 2, border<1, 1>},
      {"2 threads, both words", 2, both_words},
      {"3 threads, 2 slots", 3, pairs<3, 2, 1>},
      {"3 threads, 3 slots", 3, pairs<3, 3, 1>},
      {"3 threads, the last slot", 3, last_slot_of_three},
      {"3 threads, border", 3, border<2, 1>},
  };
  return scenarios;
}

const std::vector<Scenario>& large_scenarios() {
  static const std::vector<Scenario> scenarios = {
      {"4 threads, 5 slots", 4, many<5>},
      {"4 threads, 8 slots", 4, many<8>},
      {"4 threads, ring", 4, ring},
      {"5 threads, crowded border", 5, crowded_border},
  };
  return scenarios;
}

sim::Result explore(const Scenario& scenario, const Subject& subject, const Effort& effort) {
  sim::Options options = options_of(scenario, subject, effort);
  options.preemptions = scenario.threads == 2 ? effort.preemptions_of_two : effort.preemptions_of_three;
  if (!subject.many_steps || scenario.threads != 2 || options.preemptions < 4)
    return on_all_cpus(scenario, subject, options, 1);
  // Too many executions with both at once: all interleavings first, then stale reads with fewer preemptions.
  options.stale = 0;
  const sim::Result exact = on_all_cpus(scenario, subject, options, 1);
  if (!exact.ok()) return exact;
  options.stale = effort.stale;
  options.preemptions -= 2;
  options.name += ", stale";
  sim::Result stale = on_all_cpus(scenario, subject, options, 1);
  stale.executions += exact.executions;
  return stale;
}

sim::Result explore_randomly(const Scenario& scenario, const Subject& subject, const Effort& effort) {
  sim::Options options = options_of(scenario, subject, effort);
  options.name += ", at random";
  options.strategy = sim::Strategy::kPct;
  options.depth = 4;
  options.stale = effort.stale + 2;
  options.executions = effort.random_executions;
  return on_all_cpus(scenario, subject, options, kMostCpus);
}

sim::Result hunt(const Subject& mutant, const Effort& effort, bool briefly) {
  sim::Result result;
  // Cheap ones first: most mutants die of two threads and few preemptions, most others at random.
  Effort cheap = effort;
  cheap.preemptions_of_two = 2;
  for (const Scenario& scenario : small_scenarios()) {
    if (scenario.threads != 2) continue;
    result = explore(scenario, mutant, cheap);
    if (result.failure != sim::Failure::kNone) return result;
  }
  if (briefly) return result;
  for (const Scenario& scenario : large_scenarios()) {
    result = explore_randomly(scenario, mutant, effort);
    if (result.failure != sim::Failure::kNone) return result;
  }
  for (const Scenario& scenario : small_scenarios()) {
    result = explore(scenario, mutant, effort);
    if (result.failure != sim::Failure::kNone) return result;
  }
  return result;
}

}  // namespace freehold::model
