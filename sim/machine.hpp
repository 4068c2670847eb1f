// SPDX-License-Identifier: MIT
// The simulated machine: up to seven threads as fibres, and a memory as weak as C++20 lets it be (the limits are in
// sim/README.md). One thread runs at a time; before each access to an atomic it asks the strategy which thread goes next.
//
// A location keeps its stores in modification order, which is the order of execution. The stores that a thread may read
// follow from two vector clocks, joined along every synchronisation:
//   hb    the accesses that happen before its next one: decides data races
//   seen  those of hb, and what fences of seq_cst let it see in addition: decides which stores are too old to be read.
// Each store notes, for each thread, the clock at which the thread first saw it (wrote it or read it). A load walks back
// from the newest store and may stop anywhere up to the first store that something in its `seen` has seen: coherence and
// happens-before in one comparison. Element 7 of `seen` holds the number of the last seq_cst fence, and of a store's
// clocks its own number if it is seq_cst: their order is the order of execution. A seq_cst load sees, besides, each store of
// seq_cst, and each store that happens before a seq_cst fence. It need not see what other seq_cst loads have seen: the words
// of [atomics.order] ask for it, but the usual code for x86-64 does not do it (LWG issue 3941), and RC11 does not ask.
//
// A state is identified by a hash of what each thread has read so far and from whom (the happens-before graph), so that
// two interleavings that differ in independent steps only lead to the same state, and the second one ends there.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "freehold/base/check.hpp"
#include "sim/explore.hpp"
#include "sim/fibre.hpp"
#include "sim/sim_atomics.hpp"
#include "sim/strategy.hpp"

namespace freehold::sim {

// A vector clock that is joined and compared in one instruction or two.
using Lanes = std::int16_t __attribute__((vector_size(16)));
inline constexpr std::int16_t kNever = std::numeric_limits<std::int16_t>::max();
inline constexpr unsigned kScLane = 7;
static_assert(kMaxThreads == kScLane);

inline Lanes join(Lanes a, Lanes b) noexcept { return a > b ? a : b; }
inline bool any(Lanes mask) noexcept {
  struct Halves {
    std::uint64_t low, high;
  };
  const auto halves = std::bit_cast<Halves>(mask);
  return (halves.low | halves.high) != 0;
}

struct View {
  Lanes hb{}, seen{};
  void join(const View& other) noexcept {
    hb = sim::join(hb, other.hb);
    seen = sim::join(seen, other.seen);
  }
};

struct Store {
  std::uint64_t value;
  std::uint64_t hash;  // identifies the store within the happens-before graph
  Lanes seen;          // when each thread first saw it; kNever
  View release;        // an acquiring reader learns this
  std::uint8_t writer;
};

// An atomic object. The newest stores only: a load reaches back at most kHistory-1 stores.
struct Location {
  static constexpr unsigned kHistory = 16;
  std::array<Store, kHistory> stores;
  std::uint32_t count;    // number of stores, the initial value being the first
  std::uint64_t waiting;  // hash of the waits and notifications so far
  std::uint32_t number;   // in the order of first access, for traces
  std::int16_t born;      // the clock of its construction by the thread born_by; 0: not by a thread
  std::uint8_t born_by;

  Store& back(std::uint32_t i) noexcept { return stores[(count - 1 - i) % kHistory]; }
  std::uint32_t kept() const noexcept { return count < kHistory ? count : kHistory; }
};

// A plain object: its last write, and the reads since, by thread and clock.
struct Cell {
  std::uint8_t writer;
  std::int16_t written;  // 0: not by a thread
  Lanes read;
  Site write_site, read_site;
};

// Objects by address, forgotten all at once. References stay valid until the next call of at().
template <class T>
class AddressMap {
 public:
  void clear() noexcept {
    used_ = 0;
    if (++generation_ == 0) {
      for (Slot& slot : slots_) slot.generation = 0;
      generation_ = 1;
    }
  }
  // The object, and whether it is new (then its contents are left over).
  std::pair<T*, bool> at(const void* address) {
    const auto key = reinterpret_cast<std::uintptr_t>(address);
    std::size_t i = find(key);
    if (slots_[i].generation == generation_) return {&objects_[slots_[i].index], false};
    if (used_ * 2 >= slots_.size()) {
      grow();
      i = find(key);
    }
    slots_[i] = {key, generation_, used_};
    if (used_ == objects_.size()) objects_.emplace_back();
    return {&objects_[used_++], true};
  }
  [[nodiscard]] bool contains(const void* address) const noexcept {
    return slots_[find(reinterpret_cast<std::uintptr_t>(address))].generation == generation_;
  }
  [[nodiscard]] std::uint32_t size() const noexcept { return used_; }

 private:
  struct Slot {
    std::uintptr_t key = 0;
    std::uint32_t generation = 0;
    std::uint32_t index = 0;
  };
  std::size_t find(std::uintptr_t key) const noexcept {
    std::size_t i = (key * 0x9e3779b97f4a7c15u >> 32) & (slots_.size() - 1);
    while (slots_[i].generation == generation_ && slots_[i].key != key) i = (i + 1) & (slots_.size() - 1);
    return i;
  }
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.generation == generation_) slots_[find(slot.key)] = slot;
    }
  }

  std::vector<Slot> slots_ = std::vector<Slot>(256);
  std::vector<T> objects_;
  std::uint32_t used_ = 0;
  std::uint32_t generation_ = 1;
};

// The machine's sources share these.
namespace machine {
constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t with) noexcept {
  hash = (std::rotl(hash, 23) ^ with) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 29);
}

bool is_per_thread(const void* at) noexcept;
std::string hex(std::uint64_t value);
std::string place(const Site& site);
}  // namespace machine

class Machine {
 public:
  Machine(const Options& options, Chooser& chooser, bool tracing);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // One execution of the scenario. The chooser has begun it.
  void execute(const std::function<void(Execution&)>& scenario);

  [[nodiscard]] Failure failure() const noexcept { return failure_; }
  [[nodiscard]] const std::string& message() const noexcept { return message_; }
  [[nodiscard]] const Answers& answers() const noexcept { return answers_; }
  [[nodiscard]] std::string trace() const;
  [[nodiscard]] bool pruned() const noexcept { return pruned_; }
  [[nodiscard]] std::uint32_t steps() const noexcept { return steps_; }

  // From Execution, on the caller's stack.
  void run(Execution& run, void* final_check, void (*call)(void*));

  // From the running thread.
  std::uint64_t load(const void* at, unsigned bytes, Order order, const Site& site);
  void store(void* at, unsigned bytes, std::uint64_t value, Order order, const Site& site);
  std::uint64_t modify(void* at, unsigned bytes, Modify how, std::uint64_t operand, Order order, const Site& site);
  bool compare_exchange(void* at, unsigned bytes, std::uint64_t& expected, std::uint64_t desired, bool weak, Order success,
                        Order failure, const Site& site);
  void construct(void* at, unsigned bytes);
  void var(const void* at, bool write, const Site& site);
  void fence(Order order, const Site& site);
  void heavy_fence(const Site& site);
  void at_thread_exit(sync::ExitCall call) noexcept {
    (phase_ == Phase::kThreads ? self().at_exit : outside_at_exit_).add(call);
  }
  void end_outside_thread() noexcept;
  [[nodiscard]] std::uint64_t epoch() const noexcept { return phase_ == Phase::kThreads ? threads_epoch_ : outside_epoch_; }
  void pause();
  void wait(const void* at, unsigned bytes, std::uint64_t old, const Site& site);
  void notify(void* at, unsigned bytes, bool all, const Site& site);
  std::uint32_t await_end(std::uint32_t known, std::uint32_t of, const Site& site);
  [[nodiscard]] bool is_dead(unsigned thread) const noexcept { return (dead_ >> thread & 1) != 0; }
  bool decide();
  unsigned cpu();
  [[nodiscard]] unsigned cpus() const noexcept { return options_.cpus; }
  [[nodiscard]] bool asked_cpu() const noexcept { return asked_cpu_; }
  void set_outside_cpu(unsigned cpu) noexcept { outside_cpu_ = cpu; }
  // A restartable sequence of the running thread: begin returns its CPU. A store or the commit is made unless the thread was
  // moved or interrupted since; if it was, the sequence is over.
  unsigned sequence_begin();
  bool sequence_store(void* at, unsigned bytes, std::uint64_t value, bool commits, const Site& site);
  void sequence_end() noexcept { self().in_sequence = false; }
  [[nodiscard]] bool sequence_goes_on() noexcept { return self().in_sequence; }
  [[nodiscard]] unsigned thread() const noexcept { return current_; }
  void name(const void* at, const char* text);

  // Ends the execution. From a thread or the final check; elsewhere it throws.
  [[noreturn]] void fail(std::string message);

  static Machine* active() noexcept;

 private:
  struct Thread {
    explicit Thread(std::size_t stack_bytes) : fibre(stack_bytes) {}
    Fibre fibre;
    View now;            // happened before, and was seen by, its next access
    View on_acquire;     // an acquire fence would add this
    View on_release;     // the last release fence published this
    std::int16_t clock;  // its accesses so far
    std::uint64_t hash;  // identifies its past within the happens-before graph
    const void* waits_on;
    std::uint32_t waits_for_end_of;  // while waits_on is &ended_
    Site waits_at;
    void* body;
    void (*call)(void*);
    sync::ExitCalls at_exit;
    unsigned cpu;
    bool in_sequence;  // a restartable one, which has not been interrupted
  };
  enum class Phase : std::uint8_t { kSetUp, kThreads, kCheck };

  static void thread_main(void* machine);
  static void check_main(void* machine);
  bool guarded(void (*call)(void*), void* body);
  [[noreturn]] void stop(Failure kind);
  static void fatal_handler(base::HeapError error, const void* address);
  static void assertion_handler(const char* expression, const char* file, int line);

  Thread& self() noexcept { return *threads_[current_]; }
  // Scheduling, by the running thread.
  void step();
  void point();
  void hand_over(std::uint32_t enabled);
  void leave();  // it cannot go on: another thread does, or the phase ends
  void end();    // it is over, and a thread that waits for that goes on
  void perhaps_die();
  void sleep(const void* on, const Site& site);
  unsigned ask_schedule(std::uint32_t enabled);
  unsigned choose(Choice what, unsigned count);
  [[nodiscard]] std::uint64_t state() const noexcept;
  void arrive_on_cpu(const Thread& runner) noexcept;
  void interrupt(Thread& thread) noexcept;
  void perhaps_move(bool in_sequence);
  [[nodiscard]] std::string describe_deadlock() const;

  // Memory, for the running thread.
  Location& locate(const void* at, unsigned bytes);
  std::int16_t tick() noexcept;
  void fence_sc(Thread& thread) noexcept;
  std::int16_t enter_sc(Order order) noexcept;
  std::uint32_t readable(Location& location, std::int16_t sc_number) noexcept;
  void read(Store& store, Order order) noexcept;
  void write(Location& location, void* at, unsigned bytes, std::uint64_t value, Order order, std::int16_t sc_number,
             bool continues) noexcept;

  void note(const Site& site, const char* what, const void* at, const std::string& rest);
  std::string label(const void* at);

  const Options& options_;
  Chooser& chooser_;
  const bool tracing_;
  Fibre caller_;
  Fibre checker_;
  std::vector<std::unique_ptr<Thread>> threads_;
  Phase phase_ = Phase::kSetUp;

  // Threads as bits.
  std::uint32_t runnable_ = 0, paused_ = 0, waiting_ = 0;
  std::uint32_t ended_ = 0, dead_ = 0;  // the dead are among the ended
  unsigned crashes_left_ = 0;
  unsigned current_ = 0;
  unsigned spawned_ = 0;
  // Counts what happened in the restartable sequences of each CPU: each of them sees all of the former.
  struct Cpu {
    View view;
    std::uint64_t hash = 0;
  };
  std::array<Cpu, kMaxThreads> cpus_{};
  unsigned outside_cpu_ = 0;
  bool asked_cpu_ = false;
  std::uint64_t threads_epoch_ = 0, outside_epoch_ = 0;
  sync::ExitCalls outside_at_exit_{};
  std::uint32_t steps_ = 0;

  AddressMap<Location> locations_;
  AddressMap<Cell> cells_;

  // The order S of seq_cst operations.
  std::int16_t sc_count_ = 0;
  Lanes sc_seen_{};                  // the fences of seq_cst have seen this
  Lanes sc_before_{};                // happens before any of them
  std::uint64_t sc_fence_hash_ = 0;  // hash of the last fence
  std::uint64_t sc_sum_ = 0;         // sum over all fences and stores of seq_cst, in no order

  std::uint64_t past_phases_ = 0;  // hash of what the earlier phases of this execution did
  Answers answers_;
  bool pruned_ = false;
  Failure failure_ = Failure::kNone;
  std::string message_;
  void* final_check_ = nullptr;
  void (*final_call_)(void*) = nullptr;

  std::vector<std::string> trace_;
  std::unordered_map<const void*, std::string> names_;
};

}  // namespace freehold::sim
