// SPDX-License-Identifier: MIT
// Counts coherence misses of a pool on 1 to 384 simulated cores (cores.hpp), so that contention is seen without having the
// cores. CoherentAtomics reports every access to them.
//
//   const CoherenceCount count = coherence<Pool<CoherentAtomics>>(shape, {.cores = 64, .quantum = 16});
//   count.misses_per_pair();
//
// A miss is an access for which the line has to come from elsewhere, or other cores' copies have to go: the line was taken
// away by another core's write, or a write finds copies elsewhere. A core's first access to a line is `cold`, and counted
// apart. Only accesses through the Atomics policy are counted, after a warm-up: data private to a thread costs nothing
// here, nor do the slots' contents.
// The figures depend on the source alone, as long as the objects lie as aligned as they are in every run: a pool is made at
// the beginning of a page, and its arrays begin on a line (pool/memory.hpp).
// One count at a time in a process, no threads. Cost: about 20 ns an access.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <source_location>
#include <type_traits>

#include "freehold/base/bits.hpp"
#include "freehold/sync/atomics.hpp"
#include "sim/cores.hpp"

namespace freehold::sim {

enum class Workload : std::uint8_t {
  kOwnSlots,  // each core acquires a few slots and releases them itself
  kExchange,  // each slot is released by the next core, which has acquired one itself
  kOneWay,    // every second core acquires, the next one releases: caches run dry on one side and over on the other
};

struct CoherenceOptions {
  unsigned cores = 1;     // 1 … kMaxCores
  unsigned quantum = 1;   // accesses after which the next core goes on
  unsigned pairs = 64;    // acquire and release, by each core (one way: by each two of them)
  unsigned warm_up = 32;  // pairs before that, uncounted
  Workload workload = Workload::kOwnSlots;
  unsigned held = 4;             // own slots: how many a core holds at a time
  unsigned counted = kMaxCores;  // only the first so many cores are counted; the others are company
};

// So many slots that the caches of a pool's threads do not run it dry.
[[nodiscard]] constexpr std::size_t coherence_slots(const CoherenceOptions& options) noexcept {
  return std::size_t{512} * options.cores;
}

struct CoherenceCount {
  std::uint64_t pairs = 0;
  std::uint64_t accesses = 0;
  std::uint64_t misses = 0;
  std::uint64_t cold = 0;
  std::uint64_t lines_with_company = 0;  // lines that a counted core and one that is not both touched

  [[nodiscard]] double misses_per_pair() const noexcept {
    return pairs == 0 ? 0.0 : static_cast<double>(misses) / static_cast<double>(pairs);
  }
};

// Bounded stacks of pointers, one for each CPU, as restartable sequences make them (os/rseq.hpp): no thread is preempted
// within one here. Each lies on separate lines.
template <class A>
class CoherentCpuStacks {
 public:
  [[nodiscard]] static constexpr bool available() noexcept { return true; }

  explicit CoherentCpuStacks(unsigned entries) : entries_(entries), stride_(base::align_up(1 + entries, kPerLine)) {
    const std::size_t words = stride_ * (kMaxCores + 1);
    words_ = static_cast<Word*>(::operator new(words * sizeof(Word), std::align_val_t{base::kCacheLine}));
    for (std::size_t i = 0; i < words; ++i) ::new (static_cast<void*>(words_ + i)) Word(0);
  }
  CoherentCpuStacks(const CoherentCpuStacks&) = delete;
  CoherentCpuStacks& operator=(const CoherentCpuStacks&) = delete;
  ~CoherentCpuStacks() { ::operator delete(words_, std::align_val_t{base::kCacheLine}); }

  [[nodiscard]] void* pop() noexcept {
    Word* const mine = words_ + A::cpu_id() * stride_;
    const std::uintptr_t top = mine[0].load();
    if (top == 0) return nullptr;
    const std::uintptr_t pointer = mine[top].load();
    mine[0].store(top - 1);
    return reinterpret_cast<void*>(pointer);
  }
  [[nodiscard]] bool push(void* pointer) noexcept {
    Word* const mine = words_ + A::cpu_id() * stride_;
    const std::uintptr_t top = mine[0].load();
    if (top == entries_) return false;
    mine[top + 1].store(reinterpret_cast<std::uintptr_t>(pointer));
    mine[0].store(top + 1);
    return true;
  }

 private:
  using Word = typename A::template atomic<std::uintptr_t>;
  static constexpr std::size_t kPerLine = base::kCacheLine / sizeof(Word);
  std::size_t entries_;
  std::size_t stride_;  // words from one stack to the next: the number of pointers, the pointers
  Word* words_;
};

struct CoherentAtomics {
  using CpuStacks = CoherentCpuStacks<CoherentAtomics>;

  template <class T>
  class atomic {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(std::uint64_t));

   public:
    using value_type = T;
    static constexpr bool is_always_lock_free = true;

    constexpr atomic() noexcept : value_{} {}
    constexpr atomic(T value) noexcept : value_(value) {}  // NOLINT: as std::atomic
    atomic(const atomic&) = delete;
    atomic& operator=(const atomic&) = delete;

    using Order = std::memory_order;
    using Site = std::source_location;
    [[nodiscard]] T load(Order = Order::seq_cst, Site site = Site::current()) const noexcept {
      return touch(false, site), value_;
    }
    void store(T value, Order = Order::seq_cst, Site site = Site::current()) noexcept { touch(true, site), value_ = value; }
    T exchange(T value, Order = Order::seq_cst, Site site = Site::current()) noexcept {
      return change([=](T) { return value; }, site);
    }
    bool compare_exchange_strong(T& expected, T desired, Order, Order, Site site = Site::current()) noexcept {
      touch(true, site);  // the line comes exclusively, whether or not it succeeds
      if (std::memcmp(&value_, &expected, sizeof(T)) == 0) {
        value_ = desired;
        return true;
      }
      expected = value_;
      return false;
    }
    bool compare_exchange_strong(T& expected, T desired, Order order = Order::seq_cst,
                                 Site site = Site::current()) noexcept {
      return compare_exchange_strong(expected, desired, order, order, site);
    }
    bool compare_exchange_weak(T& expected, T desired, Order success, Order failure, Site site = Site::current()) noexcept {
      return compare_exchange_strong(expected, desired, success, failure, site);
    }
    bool compare_exchange_weak(T& expected, T desired, Order order = Order::seq_cst, Site site = Site::current()) noexcept {
      return compare_exchange_strong(expected, desired, order, order, site);
    }
    T fetch_add(T value, Order = Order::seq_cst, Site site = Site::current()) noexcept
      requires std::is_integral_v<T>
    {
      return change([=](T old) { return static_cast<T>(old + value); }, site);
    }
    T fetch_sub(T value, Order = Order::seq_cst, Site site = Site::current()) noexcept
      requires std::is_integral_v<T>
    {
      return change([=](T old) { return static_cast<T>(old - value); }, site);
    }
    T fetch_and(T value, Order = Order::seq_cst, Site site = Site::current()) noexcept
      requires std::is_integral_v<T>
    {
      return change([=](T old) { return static_cast<T>(old & value); }, site);
    }
    T fetch_or(T value, Order = Order::seq_cst, Site site = Site::current()) noexcept
      requires std::is_integral_v<T>
    {
      return change([=](T old) { return static_cast<T>(old | value); }, site);
    }

   private:
    friend struct CoherentAtomics;
    void touch(bool write, const Site& site) const noexcept {
      if (coherent::cores_run) coherent::touch(&value_, write, site);
    }
    template <class F>
    T change(F&& f, const Site& site) noexcept {
      touch(true, site);
      const T old = value_;
      value_ = f(old);
      return old;
    }

    T value_;
  };

  template <class T>
  class var {
   public:
    constexpr var() noexcept = default;
    constexpr explicit var(T value) noexcept : value_(value) {}
    [[nodiscard]] T load(std::source_location site = std::source_location::current()) const noexcept {
      if (coherent::cores_run) coherent::touch(this, false, site);
      return value_;
    }
    void store(T value, std::source_location site = std::source_location::current()) noexcept {
      if (coherent::cores_run) coherent::touch(this, true, site);
      value_ = value;
    }

   private:
    T value_{};
  };

  // One core runs at a time, and what it does takes effect at once.
  static void fence(std::memory_order) noexcept {}
  static void light_fence() noexcept {}
  static void heavy_fence() noexcept {}
  static bool may_fence_heavily() noexcept { return true; }
  static void pause() noexcept {
    if (coherent::cores_run) coherent::pause();
  }
  static void yield() noexcept { pause(); }
  static unsigned cpu_id() noexcept { return coherent::core(); }
  static std::uint32_t thread_number() noexcept { return coherent::core(); }
  static std::uint32_t thread_id() noexcept { return 1000 + 8 * coherent::core(); }
  // One for each core, on lines of their own, and one for what is outside of them; zero again in every count.
  template <class T>
  static T& per_thread() noexcept {
    static_assert(std::is_trivially_destructible_v<T>);
    struct alignas(base::kCacheLine) Place {
      T object;
      std::uint64_t epoch;
    };
    static Place places[kMaxCores + 1]{};
    Place& mine = places[coherent::core()];
    if (mine.epoch != coherent::epoch()) {
      std::memset(static_cast<void*>(&mine), 0, sizeof mine);
      mine.epoch = coherent::epoch();
    }
    return mine.object;
  }
  template <class T>
  static T& per_process() noexcept {
    static_assert(std::is_trivially_destructible_v<T>);
    alignas(base::kCacheLine) alignas(T) static std::byte object[sizeof(T)]{};
    static std::uint64_t epoch = 0;
    if (epoch != coherent::epoch()) {
      std::memset(object, 0, sizeof object);
      epoch = coherent::epoch();
    }
    return *reinterpret_cast<T*>(object);
  }
  static void at_thread_exit(sync::ExitCall call) noexcept { coherent::at_thread_exit(call); }
  static void wait(const atomic<std::uint32_t>& a, std::uint32_t old) noexcept {
    if (a.load() == old && coherent::cores_run) coherent::wait(&a.value_);
  }
  static void notify_one(atomic<std::uint32_t>& a) noexcept {
    if (coherent::cores_run) coherent::notify(&a.value_, false);
  }
  static void notify_all(atomic<std::uint32_t>& a) noexcept {
    if (coherent::cores_run) coherent::notify(&a.value_, true);
  }
  template <class T>
  static constexpr T decide(T value, T) noexcept {
    return value;
  }
};
static_assert(sync::Atomics<CoherentAtomics>);

// A pool with its type left behind.
struct PoolCalls {
  void* pool;
  void* (*acquire)(void* pool);
  void (*release)(void* pool, void* slot);
};

// Runs the workload on the pool and counts. Errors: std::invalid_argument; std::runtime_error if the cores wait for each
// other for ever, or the pool has fewer slots than the workload holds.
[[nodiscard]] CoherenceCount count_misses(const CoherenceOptions& options, const PoolCalls& calls);

// A pool at the beginning of a page, made and destroyed by a separate thread.
template <class P>
class PoolAtPage {
 public:
  template <class Shape>
  explicit PoolAtPage(const Shape& shape) {
    end_outside_of_cores();
    void* const memory = ::operator new(sizeof(P), kAlignment);
    try {
      pool_ = ::new (memory) P(shape);
    } catch (...) {
      ::operator delete(memory, kAlignment);
      throw;
    }
  }
  PoolAtPage(const PoolAtPage&) = delete;
  PoolAtPage& operator=(const PoolAtPage&) = delete;
  ~PoolAtPage() {
    pool_->~P();
    end_outside_of_cores();
    ::operator delete(pool_, kAlignment);
  }
  [[nodiscard]] PoolCalls calls() const noexcept {
    return {pool_, [](void* pool) { return static_cast<P*>(pool)->acquire(); },
            [](void* pool, void* slot) { static_cast<P*>(pool)->release(slot); }};
  }

 private:
  static constexpr std::align_val_t kAlignment{alignof(P) > 4096 ? alignof(P) : 4096};
  P* pool_ = nullptr;
};

// The same of a pool over CoherentAtomics, made for the occasion from its shape.
template <class P, class Shape>
[[nodiscard]] CoherenceCount coherence(const Shape& shape, const CoherenceOptions& options) {
  const PoolAtPage<P> pool(shape);
  return count_misses(options, pool.calls());
}

}  // namespace freehold::sim
