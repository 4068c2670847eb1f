// SPDX-License-Identifier: MIT
// SimAtomics: the Atomics policy on the simulated machine (sim/machine.hpp). Every access of a thread of a running
// scenario is reported with its place in the source, may be preempted before it takes effect, and reads what the
// strategy chooses among the values that the memory model allows.
// The objects have the layout of their native twins and hold the newest value in place; the machine learns of an object
// when it is first accessed in an execution. So arrays of zeros are atomics already, however large. Outside of the
// threads of a scenario (set-up, final check, no explore() at all) every access is a plain one.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <source_location>
#include <type_traits>

#include "freehold/sync/atomics.hpp"

namespace freehold::sim {

using Order = std::memory_order;
using Site = std::source_location;

// Threads of one execution; the eighth lane of a vector clock numbers the seq_cst operations.
inline constexpr unsigned kMaxThreads = 7;

enum class Modify : std::uint8_t { kExchange, kAdd, kSub, kAnd, kOr };

// SimAtomics reports these to the machine; implemented in machine.cpp. Values travel as 64 bits, zero-extended.
namespace report {
extern constinit bool threads_run;  // else every access is a plain one
std::uint64_t load(const void* at, unsigned bytes, Order order, const Site& site);
void store(void* at, unsigned bytes, std::uint64_t value, Order order, const Site& site);
std::uint64_t modify(void* at, unsigned bytes, Modify how, std::uint64_t operand, Order order, const Site& site);
bool compare_exchange(void* at, unsigned bytes, std::uint64_t& expected, std::uint64_t desired, bool weak, Order success,
                      Order failure, const Site& site);
void construct(void* at, unsigned bytes);
void var(const void* at, bool write, const Site& site);
void fence(Order order, const Site& site);
void heavy_fence(const Site& site);
void at_thread_exit(sync::ExitCall call);
void pause();
unsigned cpu();
unsigned cpus();  // Options::cpus
unsigned sequence_begin();
bool sequence_store(void* at, unsigned bytes, std::uint64_t value, bool commits, const Site& site);
bool sequence_goes_on();
void sequence_end();
void keep_per_thread(std::byte* objects, std::size_t bytes_each);  // they end with their threads
unsigned thread();                                                 // kMaxThreads outside of the threads
std::uint64_t epoch();      // another one for every new life of the running thread, or of what is outside of the threads
std::uint64_t execution();  // another one for every execution, and when one was cut short
void wait(const void* at, unsigned bytes, std::uint64_t old, const Site& site);
void notify(void* at, unsigned bytes, bool all, const Site& site);
bool decide();
}  // namespace report

template <class T>
class atomic {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(std::uint64_t));

 public:
  using value_type = T;
  static constexpr bool is_always_lock_free = true;

  constexpr atomic() noexcept : atomic(T{}) {}
  constexpr atomic(T value) noexcept : value_(value) {  // NOLINT: as std::atomic
    if (!std::is_constant_evaluated() && report::threads_run) report::construct(&value_, sizeof(T));
  }
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;

  [[nodiscard]] T load(Order order = Order::seq_cst, Site site = Site::current()) const noexcept {
    return report::threads_run ? from_bits(report::load(&value_, sizeof(T), order, site)) : value_;
  }
  void store(T value, Order order = Order::seq_cst, Site site = Site::current()) noexcept {
    report::threads_run ? report::store(&value_, sizeof(T), to_bits(value), order, site) : static_cast<void>(value_ = value);
  }
  T exchange(T value, Order order = Order::seq_cst, Site site = Site::current()) noexcept {
    return modify(Modify::kExchange, value, order, site);
  }
  bool compare_exchange_weak(T& expected, T desired, Order success, Order failure, Site site = Site::current()) noexcept {
    return compare_exchange(expected, desired, true, success, failure, site);
  }
  bool compare_exchange_weak(T& expected, T desired, Order order = Order::seq_cst, Site site = Site::current()) noexcept {
    return compare_exchange(expected, desired, true, order, on_failure(order), site);
  }
  bool compare_exchange_strong(T& expected, T desired, Order success, Order failure, Site site = Site::current()) noexcept {
    return compare_exchange(expected, desired, false, success, failure, site);
  }
  bool compare_exchange_strong(T& expected, T desired, Order order = Order::seq_cst, Site site = Site::current()) noexcept {
    return compare_exchange(expected, desired, false, order, on_failure(order), site);
  }
  T fetch_add(T value, Order order = Order::seq_cst, Site site = Site::current()) noexcept
    requires std::is_integral_v<T>
  {
    return modify(Modify::kAdd, value, order, site);
  }
  T fetch_sub(T value, Order order = Order::seq_cst, Site site = Site::current()) noexcept
    requires std::is_integral_v<T>
  {
    return modify(Modify::kSub, value, order, site);
  }
  T fetch_and(T value, Order order = Order::seq_cst, Site site = Site::current()) noexcept
    requires std::is_integral_v<T>
  {
    return modify(Modify::kAnd, value, order, site);
  }
  T fetch_or(T value, Order order = Order::seq_cst, Site site = Site::current()) noexcept
    requires std::is_integral_v<T>
  {
    return modify(Modify::kOr, value, order, site);
  }

 private:
  friend struct SimAtomics;
  friend class Sequence;

  static std::uint64_t to_bits(T value) noexcept {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return bits;
  }
  static T from_bits(std::uint64_t bits) noexcept {
    T value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  static constexpr Order on_failure(Order order) noexcept {
    return order == Order::acq_rel ? Order::acquire : order == Order::release ? Order::relaxed : order;
  }
  T modify(Modify how, T operand, Order order, const Site& site) noexcept {
    if (report::threads_run) return from_bits(report::modify(&value_, sizeof(T), how, to_bits(operand), order, site));
    const T old = value_;
    if constexpr (std::is_integral_v<T>) {
      switch (how) {
        case Modify::kExchange: value_ = operand; break;
        case Modify::kAdd: value_ = static_cast<T>(to_bits(old) + to_bits(operand)); break;
        case Modify::kSub: value_ = static_cast<T>(to_bits(old) - to_bits(operand)); break;
        case Modify::kAnd: value_ = static_cast<T>(old & operand); break;
        case Modify::kOr: value_ = static_cast<T>(old | operand); break;
      }
    } else {
      value_ = operand;
    }
    return old;
  }
  bool compare_exchange(T& expected, T desired, bool weak, Order success, Order failure, const Site& site) noexcept {
    std::uint64_t bits = to_bits(expected);
    bool swapped = false;
    if (report::threads_run) {
      swapped = report::compare_exchange(&value_, sizeof(T), bits, to_bits(desired), weak, success, failure, site);
    } else {
      swapped = to_bits(value_) == bits;
      bits = to_bits(value_);
      if (swapped) value_ = desired;
    }
    if (!swapped) expected = from_bits(bits);
    return swapped;
  }

  T value_;
};

template <class T>
class var {
 public:
  constexpr var() noexcept = default;
  constexpr explicit var(T value) noexcept : value_(value) {}
  [[nodiscard]] T load(Site site = Site::current()) const noexcept {
    if (report::threads_run) report::var(this, false, site);
    return value_;
  }
  void store(T value, Site site = Site::current()) noexcept {
    if (report::threads_run) report::var(this, true, site);
    value_ = value;
  }

 private:
  T value_{};
};

// A restartable sequence of the running thread, as the kernel has them: loads, then stores, of which the last one, the
// commit, makes it happen. If the thread was preempted on its CPU by another one, moved, or interrupted before a store, then
// neither that store is made nor any later one. What a sequence did is visible to the later ones of its CPU.
class Sequence {
 public:
  Sequence() noexcept : cpu_(report::sequence_begin()) {}
  ~Sequence() {
    if (report::threads_run) report::sequence_end();
  }
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;

  [[nodiscard]] unsigned cpu() const noexcept { return cpu_; }
  // Returns whether it still holds what was read; if not, nothing more may be done with it.
  [[nodiscard]] static bool goes_on() noexcept { return !report::threads_run || report::sequence_goes_on(); }
  // False: the store was not made, and the sequence is over.
  template <class T>
  [[nodiscard]] static bool store(atomic<T>& to, T value, Site site = Site::current()) noexcept {
    return put(to, value, false, site);
  }
  template <class T>
  [[nodiscard]] static bool commit(atomic<T>& to, T value, Site site = Site::current()) noexcept {
    return put(to, value, true, site);
  }

 private:
  template <class T>
  static bool put(atomic<T>& to, T value, bool commits, const Site& site) noexcept {
    if (report::threads_run) return report::sequence_store(&to.value_, sizeof(T), atomic<T>::to_bits(value), commits, site);
    to.value_ = value;
    return true;
  }

  unsigned cpu_;
};

// Bounded stacks of pointers, one for each CPU, by such sequences: what os/rseq.hpp does natively. A mutant's Sequence may
// misbehave.
template <class S>
class SequenceStacks {
 public:
  [[nodiscard]] static bool available() noexcept { return report::cpus() != 0; }

  explicit SequenceStacks(unsigned entries) : entries_(entries) {
    for (Stack& stack : stacks_) stack.pointers = std::make_unique<atomic<void*>[]>(entries);
  }

  [[nodiscard]] void* pop() noexcept {
    for (;;) {
      const S sequence;
      Stack& mine = stacks_[sequence.cpu()];
      // relaxed, all: on one CPU everything happens in order.
      const unsigned top = mine.top.load(Order::relaxed);
      if (!sequence.goes_on()) continue;
      if (top == 0) return nullptr;
      void* const pointer = mine.pointers[top - 1].load(Order::relaxed);
      if (sequence.commit(mine.top, top - 1)) return pointer;
    }
  }
  [[nodiscard]] bool push(void* pointer) noexcept {
    for (;;) {
      const S sequence;
      Stack& mine = stacks_[sequence.cpu()];
      const unsigned top = mine.top.load(Order::relaxed);
      if (!sequence.goes_on()) continue;
      if (top == entries_) return false;
      if (sequence.store(mine.pointers[top], pointer) && sequence.commit(mine.top, top + 1)) return true;
    }
  }

 private:
  struct Stack {
    atomic<unsigned> top{0};
    std::unique_ptr<atomic<void*>[]> pointers;
  };
  unsigned entries_;
  Stack stacks_[kMaxThreads];
};

struct SimAtomics {
  using CpuStacks = SequenceStacks<Sequence>;
  template <class T>
  using atomic = sim::atomic<T>;
  template <class T>
  using var = sim::var<T>;

  static void fence(Order order, Site site = Site::current()) noexcept {
    if (report::threads_run) report::fence(order, site);
  }
  static void light_fence() noexcept {}  // accesses take effect in program order; stale reads are what a heavy fence ends
  static void heavy_fence(Site site = Site::current()) noexcept {
    if (report::threads_run) report::heavy_fence(site);
  }
  static bool may_fence_heavily() noexcept { return true; }
  static std::uint32_t thread_number() noexcept { return report::thread(); }
  // As far apart as a system's ids may be.
  static std::uint32_t thread_id() noexcept { return 1000 + 8 * report::thread(); }
  // One for each thread, and one for what is outside of them; zero again when a thread begins. Bytes: objects would be
  // constructed by the thread that comes first, in the first execution only.
  template <class T>
  static T& per_thread() noexcept {
    static_assert(std::is_trivially_destructible_v<T>);
    alignas(T) static std::byte objects[kMaxThreads + 1][sizeof(T)]{};
    static std::uint64_t epochs[kMaxThreads + 1]{};
    static const bool known = (report::keep_per_thread(objects[0], sizeof(T)), true);
    (void)known;
    std::byte* const mine = objects[report::thread()];
    if (std::uint64_t& epoch = epochs[report::thread()]; epoch != report::epoch()) {
      epoch = report::epoch();
      std::memset(mine, 0, sizeof(T));
    }
    return *reinterpret_cast<T*>(mine);
  }
  // Zero again in every execution, and after one was cut short: its threads may have left a lock behind.
  template <class T>
  static T& per_process() noexcept {
    static_assert(std::is_trivially_destructible_v<T>);
    alignas(T) static std::byte object[sizeof(T)]{};
    static std::uint64_t execution = 0;
    if (execution != report::execution()) {
      execution = report::execution();
      std::memset(object, 0, sizeof object);
    }
    return *reinterpret_cast<T*>(object);
  }
  // At the end of the thread's body, as steps of the thread; outside of the threads, in sim::end_outside_thread().
  static void at_thread_exit(sync::ExitCall call) noexcept { report::at_thread_exit(call); }
  // Lets another thread go first, at no cost in preemptions.
  static void pause() noexcept {
    if (report::threads_run) report::pause();
  }
  static void yield() noexcept { pause(); }
  // May be another one at the next call, if Options::cpus lets threads move.
  static unsigned cpu_id() noexcept { return report::cpu(); }
  static void wait(const atomic<std::uint32_t>& a, std::uint32_t old, Site site = Site::current()) noexcept {
    if (report::threads_run) report::wait(&a.value_, sizeof old, old, site);
  }
  static void notify_one(atomic<std::uint32_t>& a, Site site = Site::current()) noexcept {
    if (report::threads_run) report::notify(&a.value_, sizeof a.value_, false, site);
  }
  static void notify_all(atomic<std::uint32_t>& a, Site site = Site::current()) noexcept {
    if (report::threads_run) report::notify(&a.value_, sizeof a.value_, true, site);
  }
  // Time passes as the strategy chooses: a time-out is a wake-up for no reason.
  template <class T>
  static void wait_shared(const atomic<T>& a, T old, std::uint64_t = sync::kForever, Site site = Site::current()) noexcept {
    if (report::threads_run) report::wait(&a.value_, sizeof(T), old, site);
  }
  template <class T>
  static void notify_one_shared(atomic<T>& a, Site site = Site::current()) noexcept {
    if (report::threads_run) report::notify(&a.value_, sizeof(T), false, site);
  }
  template <class T>
  static void notify_all_shared(atomic<T>& a, Site site = Site::current()) noexcept {
    if (report::threads_run) report::notify(&a.value_, sizeof(T), true, site);
  }
  // Both are explored, unless Options::decide says otherwise.
  template <class T>
  static T decide(T value, T alternative) noexcept {
    return report::threads_run && value != alternative && report::decide() ? alternative : value;
  }
};
static_assert(sync::Atomics<SimAtomics> && sync::SharedAtomics<SimAtomics>);

}  // namespace freehold::sim
