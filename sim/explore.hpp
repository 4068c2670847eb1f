// SPDX-License-Identifier: MIT
// How a test uses the simulated machine: explore() runs a scenario over and over, each time with another interleaving, other
// stale reads and other decisions, until all within the bounds are explored, or one of them fails.
//
//   Result r = explore({.name = "Queue_TwoPushes"}, [](Execution& run) {
//     Queue<SimAtomics> queue;                       // fresh state for every execution
//     run.spawn([&] { queue.push(1); });
//     run.spawn([&] { queue.push(2); });
//     run.check([&] { SIM_CHECK(queue.size() == 2); });   // runs the threads, then the check
//   });
//   EXPECT_TRUE(r.ok()) << r;
//
// A failure is a violated SIM_CHECK, a fatal() or failed assertion of the code under test, an exception, a data race on
// A::var, a deadlock (a lost wake-up is one), or more steps than the limit (a livelock). Result::replay then names the one
// execution; FREEHOLD_REPLAY=<string> in the environment, or --replay=<string> on the command line, runs only that one in
// the explore() of that name and prints its accesses. sim/README.md explains the memory model and its limits.
//
// FREEHOLD_SIM_SEED in the environment asks every explore() to search beyond its bounds, with seeds moved by this,
// FREEHOLD_SIM_PREEMPTIONS and FREEHOLD_SIM_STALE more of these, and FREEHOLD_SIM_TIMES as many random executions; a bounded
// search then counts as complete when it comes to its limit of executions. script/soak does that.
//
// The rules of a scenario. It is deterministic except for accesses through SimAtomics. Threads talk through SimAtomics only:
// other shared variables may record, they may not steer. A thread body owns no heap memory across an access, because an
// execution that is cut short abandons its threads where they stand. One explore() at a time in a process.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "sim/sim_atomics.hpp"

namespace freehold::sim {

enum class Strategy : std::uint8_t {
  kExhaustive,  // depth first: every execution within the bounds, equivalent ones once
  kPct,         // probabilistic concurrency testing (Burckhardt 2010): random priorities, few change points
};

// The result of A::decide(value, alternative) in the threads.
enum class Decide : std::uint8_t { kBoth, kValue, kAlternative };

struct Options {
  std::string name;  // names the explore() in replay strings; unique within a test program
  Strategy strategy = Strategy::kExhaustive;
  unsigned cpus = 0;                     // 0: one for each thread; else threads share so many, and move between them
  unsigned preemptions = 2;              // exhaustive: switches away from a thread that could go on, and its moves
  unsigned stale = 1;                    // loads that return an older value, spurious failures and wake-ups
  unsigned crashes = 0;                  // so many threads may stop for ever, each at any of its steps
  std::uint32_t mortal = ~0u;            // which ones, as bits in the order of spawn
  unsigned depth = 3;                    // PCT: the depth of the bugs it looks for
  std::uint64_t seed = 1;                // PCT
  std::uint64_t executions = 2'000'000;  // at most so many; PCT: exactly so many
  std::uint32_t steps = 20'000;          // steps of one execution; more is a livelock
  std::size_t visited_states = 1 << 22;  // exhaustive: remembered states, 16 bytes each
  Decide decide = Decide::kBoth;
  bool reduction = true;  // exhaustive: visit equivalent states once
  bool print = true;      // one line with the figures on standard output
};

enum class Failure : std::uint8_t { kNone, kCheck, kRace, kDeadlock, kLivelock, kScenario };

std::ostream& operator<<(std::ostream& out, Failure failure);

struct Result {
  Failure failure = Failure::kNone;
  std::string message;           // the failure
  std::string replay;            // for FREEHOLD_REPLAY
  std::string trace;             // the accesses of the failed execution
  std::uint64_t executions = 0;  // begun, those cut short included
  std::uint64_t pruned = 0;      // executions among these that were cut short because they reached a state seen before
  std::uint64_t steps = 0;       // scheduling points in all
  bool asked_cpu = false;        // a thread wanted to know its CPU, so Options::cpus makes a difference
  bool complete = false;         // everything within the bounds was explored

  // Nothing failed; and an exhaustive exploration came to its end.
  [[nodiscard]] bool ok() const noexcept { return failure == Failure::kNone && complete; }
};
std::ostream& operator<<(std::ostream& out, const Result& result);

// A scenario gets this: the threads of one execution.
class Execution {
 public:
  // Adds a thread; it runs in check(). Pre: fewer than kMaxThreads so far.
  template <class F>
  void spawn(F body) {
    static_assert(sizeof(F) <= kBodyBytes && std::is_nothrow_move_constructible_v<F>);
    Body& slot = new_body();
    ::new (static_cast<void*>(slot.storage)) F(std::move(body));
    slot.call = [](void* f) { (*static_cast<F*>(f))(); };
    slot.destroy = [](void* f) { static_cast<F*>(f)->~F(); };
  }

  // Runs the threads to their end, then `final_check`, alone and seeing everything; not if the execution was cut short.
  // May follow further spawns: phases run one after the other.
  template <class F>
  void check(F final_check) {
    run(&final_check, [](void* f) { (*static_cast<F*>(f))(); });
  }

 private:
  friend class Machine;
  static constexpr std::size_t kBodyBytes = 128;
  struct Body {
    alignas(std::max_align_t) std::byte storage[kBodyBytes];
    void (*call)(void*);
    void (*destroy)(void*);
  };
  Body& new_body();
  void run(void* final_check, void (*call)(void*));
  void clear() noexcept;

  Body bodies_[kMaxThreads];
  unsigned count_ = 0;
  bool checked_ = false;
};

// Explores the scenario. Prints one line of figures unless told otherwise.
Result explore(const Options& options, const std::function<void(Execution&)>& scenario);

// Ends the execution with a failure. From a thread body or the final check; in the set-up it throws.
[[noreturn]] void fail(std::string message);
[[noreturn]] void fail(const char* message);

// A name for an atomic or var, for traces.
void name(const void* address, const char* text);

// Ends the thread that the set-up or the final check ran in: its at_thread_exit() calls are made, its per_thread() objects
// are gone, and what follows is another thread's.
void end_outside_thread();

// On which CPU the set-up or the final check goes on; at first on CPU 0.
void set_outside_cpu(unsigned cpu);

// The running thread's number within the execution, in the order of spawn.
[[nodiscard]] unsigned thread_index() noexcept;

// Waits until threads of `of` (as bits) have ended, by themselves or by a crash, which are not in `known`. Returns all that
// have ended; what they did happens before. Called by a thread: the simulated supervisor, which the kernel tells.
std::uint32_t await_end(std::uint32_t known, std::uint32_t of = ~0u, Site site = Site::current());
// Returns whether a thread whose end await_end() told has crashed.
[[nodiscard]] bool is_dead(unsigned thread) noexcept;

}  // namespace freehold::sim

#define FREEHOLD_SIM_STRINGIFY_(x) #x
#define FREEHOLD_SIM_STRINGIFY(x) FREEHOLD_SIM_STRINGIFY_(x)
// Ends the execution with a failure unless the condition holds.
#define SIM_CHECK(condition)          \
  ((condition) ? static_cast<void>(0) \
               : ::freehold::sim::fail(#condition " at " __FILE__ ":" FREEHOLD_SIM_STRINGIFY(__LINE__)))
