// What the tests of arena and core stand on: page sources that fail on request and can be looked into, a clock that is set
// by hand, a small configuration, and a thread's way through a core without the engine around it.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "freehold/alloc/config.hpp"
#include "freehold/alloc/core.hpp"
#include "freehold/os/pages.hpp"
#include "freehold/sync/atomics.hpp"

namespace freehold::test {

// The system's pages, of which the k-th request fails. Everything is released at the end; a range that is purged or moved
// without being committed is an error of the engine.
class FakePages {
 public:
  enum Kind : unsigned { kReserve, kReserveAt, kCommit, kPurge, kMap, kMove, kKinds };
  struct Call {
    Kind kind;
    std::uintptr_t address;
    std::size_t bytes;
  };
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  FakePages() = default;
  FakePages(const FakePages&) = delete;
  FakePages& operator=(const FakePages&) = delete;
  ~FakePages() {
    for (const auto& [start, bytes] : mappings_) os::Pages::release(reinterpret_cast<void*>(start), bytes);
  }

  // The calls [first, last] from now fail, counted from 1; of one kind or of all.
  void fail(std::uint64_t first, std::uint64_t last, unsigned kind = kKinds) {
    const std::lock_guard guard(lock_);
    counted_ = 0;
    fail_first_ = first;
    fail_last_ = last;
    fail_kind_ = kind;
  }
  void fail_from_now_on(unsigned kind = kKinds) { fail(1, kNever, kind); }
  void heal() { fail(kNever, kNever); }
  // Calls since the last fail() or heal(), of the kind that it named.
  [[nodiscard]] std::uint64_t counted() const { return counted_; }
  [[nodiscard]] std::uint64_t calls(Kind kind) const { return calls_[kind]; }
  // Purge calls that succeeded.
  [[nodiscard]] const std::vector<Call>& purges() const { return purges_; }
  void forget_purges() { purges_.clear(); }
  [[nodiscard]] std::size_t advised_bytes() const { return advised_bytes_; }
  [[nodiscard]] std::size_t mapped_bytes() const {
    std::size_t sum = 0;
    for (const auto& [start, bytes] : mappings_) sum += bytes;
    return sum;
  }

  void* reserve(std::size_t bytes, std::size_t alignment) noexcept {
    return add(allowed(kReserve) ? os::Pages::reserve(bytes, alignment) : nullptr, bytes);
  }
  bool reserve_at(void* address, std::size_t bytes) noexcept {
    return allowed(kReserveAt) && os::Pages::reserve_at(address, bytes) && add(address, bytes) != nullptr;
  }
  bool commit(void* address, std::size_t bytes) noexcept { return allowed(kCommit) && os::Pages::commit(address, bytes); }
  bool purge(void* address, std::size_t bytes) noexcept {
    if (!allowed(kPurge)) return false;
    const bool done = os::Pages::purge(address, bytes);
    EXPECT_TRUE(done) << "purge of what is not ours: " << address << ", " << bytes;
    const std::lock_guard guard(lock_);
    purges_.push_back({kPurge, reinterpret_cast<std::uintptr_t>(address), bytes});
    return done;
  }
  void* map(std::size_t bytes) noexcept { return add(allowed(kMap) ? os::Pages::map(bytes) : nullptr, bytes); }
  void advise_huge(void*, std::size_t bytes) noexcept { advised_bytes_ += bytes; }
  bool move(void* from, void* to, std::size_t bytes) noexcept { return allowed(kMove) && os::Pages::move(from, to, bytes); }
  // A whole mapping, or its end: an arena under a limit gives up what it reserved last.
  void release(void* address, std::size_t bytes) noexcept {
    const std::lock_guard guard(lock_);
    const auto start = reinterpret_cast<std::uintptr_t>(address);
    std::uintptr_t end = start + bytes;
    while (end > start) {  // the reservation may have grown in steps
      auto mapping = mappings_.lower_bound(end);
      ASSERT_NE(mapping, mappings_.begin()) << "release of what is not ours";
      --mapping;
      ASSERT_EQ(mapping->first + mapping->second, end) << "release of what is not ours";
      const std::uintptr_t from = std::max(mapping->first, start);
      mapping->second -= end - from;
      if (mapping->second == 0) mappings_.erase(mapping);
      end = from;
    }
    os::Pages::release(address, bytes);
  }

 private:
  [[nodiscard]] bool allowed(Kind kind) noexcept {
    const std::lock_guard guard(lock_);
    ++calls_[kind];
    if (fail_kind_ != kKinds && fail_kind_ != kind) return true;
    ++counted_;
    if (counted_ < fail_first_ || counted_ > fail_last_) return true;
    errno = ENOMEM;
    return false;
  }
  void* add(void* start, std::size_t bytes) noexcept {
    const std::lock_guard guard(lock_);
    if (start != nullptr) mappings_[reinterpret_cast<std::uintptr_t>(start)] = bytes;
    return start;
  }

  std::mutex lock_;
  std::map<std::uintptr_t, std::size_t> mappings_;
  std::vector<Call> purges_;
  std::atomic<std::uint64_t> calls_[kKinds]{};
  std::atomic<std::uint64_t> counted_{0};
  std::uint64_t fail_first_ = kNever, fail_last_ = kNever;
  unsigned fail_kind_ = kKinds;
  std::atomic<std::size_t> advised_bytes_{0};
};
static_assert(os::PageSource<FakePages>);

// Milliseconds, set by the test.
struct FakeClock {
  static inline std::atomic<std::uint64_t> time{1'000'000};
  static std::uint64_t now() noexcept { return time.load(std::memory_order_relaxed); }
  static void pass(std::uint64_t milliseconds) { time += milliseconds; }
};

// The machine's configuration with small steps, so that a few MiB see every one of them.
struct SmallConfig : alloc::NativeConfig {
  static constexpr std::size_t kBaseAlignment = std::size_t{1} << 20;
  static constexpr alloc::SpanIndex kFirstStepSpans = 2;
  static constexpr alloc::SpanIndex kMaxStepSpans = 8;
  static constexpr alloc::SpanIndex kReserveStepSpans = 4;
  static constexpr alloc::SpanIndex kHugeAfterSpans = 16;
  static constexpr std::uint64_t kRetainBytes = std::uint64_t{2} << 20;
  static constexpr std::uint64_t kScanMinBytes = std::uint64_t{1} << 20;
  static constexpr std::size_t kThreadMaxBytes = 512 * 1024;
};

inline constexpr std::size_t kSpan = std::size_t{1} << SmallConfig::kSpanShift;

[[nodiscard]] inline alloc::ArenaSettings small_settings(std::size_t half_bytes = std::size_t{16} << 20,
                                                         bool in_steps = false) {
  return {.half_bytes = half_bytes, .in_steps = in_steps, .purge_delay_ms = 500, .huge_pages = alloc::HugePages::kOff};
}

// A core with its pages, and blocks in it by size, as the engine hands them out. One thread of its own; others attach a
// Thread each.
template <class A = sync::NativeAtomics, class Config = SmallConfig>
class TestCore {
 public:
  using Core = alloc::Core<A, Config, FakePages, FakeClock>;
  using Cache = typename Core::Cache;
  using Classes = typename Config::Classes;
  static constexpr std::size_t kBudget = std::size_t{1} << 20;

  explicit TestCore(const alloc::ArenaSettings& settings = small_settings(), std::size_t budget = kBudget, unsigned cpus = 1)
      : core_(std::make_unique<Core>()) {
    ready_ = core_->init(pages, settings, budget, cpus);
  }

  [[nodiscard]] bool ready() const { return ready_; }
  Core& operator*() { return *core_; }
  Core* operator->() { return core_.get(); }
  [[nodiscard]] auto& arena() { return core_->arena(); }
  [[nodiscard]] alloc::Stats stats() {
    auto out = std::make_unique<alloc::Stats>();
    core_->stats(*out);
    return *out;
  }
  [[nodiscard]] unsigned class_of(const void* block) {
    const std::size_t span = (reinterpret_cast<std::uintptr_t>(block) - arena().base()) >> Config::kSpanShift;
    return span < arena().span_count() ? arena().owners()[span].load(std::memory_order_relaxed) : 0;
  }
  [[nodiscard]] std::size_t usable(const void* block) {
    const unsigned c = class_of(block);
    return c != 0 ? Classes::slot_bytes(c) : core_->large_bytes(block);
  }

  FakePages pages;

 private:
  std::unique_ptr<Core> core_;
  bool ready_ = false;
};

// What the engine does for a thread: its cache, or the uncached paths without one.
template <class Machine>
class Thread {
 public:
  using Classes = typename Machine::Classes;

  explicit Thread(Machine& machine) : machine_(machine), cache_(machine->attach()) {}
  struct Uncached {};
  Thread(Machine& machine, Uncached) : machine_(machine) {}
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;
  ~Thread() { leave(); }

  void leave() {
    if (cache_ != nullptr) machine_->detach(cache_);
    cache_ = nullptr;
  }
  void forget() { cache_ = nullptr; }  // somebody else has detached the cache
  [[nodiscard]] auto* cache() { return cache_; }

  [[nodiscard]] void* allocate_class(unsigned c) {
    if (cache_ == nullptr) return machine_->allocate_uncached(c);
    void* slot = cache_->pop(c);
    return slot != nullptr ? slot : machine_->refill(*cache_, c);
  }
  [[nodiscard]] void* allocate(std::size_t bytes) {
    bool zero = false;
    return bytes <= Classes::kMaxBytes ? allocate_class(Classes::class_of(bytes)) : machine_->allocate_large(bytes, 1, zero);
  }
  [[nodiscard]] void* allocate_aligned(std::size_t alignment, std::size_t bytes) {
    if (alignment <= Classes::kMaxBytes)
      if (const unsigned c = Classes::aligned_class_of(alignment, bytes); c != 0) return allocate_class(c);
    bool zero = false;
    return machine_->allocate_large(std::max(bytes, Classes::kMaxBytes + 1), alignment, zero);
  }
  void free(void* block) {
    const unsigned c = block == nullptr ? 0 : machine_.class_of(block);
    if (c == 0) return machine_->free_large(block);
    if (cache_ == nullptr) return machine_->free_uncached(c, block);
    if (!cache_->push(c, block)) machine_->drain(*cache_, c, block);
  }

 private:
  Machine& machine_;
  typename Machine::Cache* cache_ = nullptr;
};

// A block whose every byte tells whether it still is what was written.
struct Stamped {
  unsigned char* memory = nullptr;
  std::size_t bytes = 0;
  unsigned char stamp = 0;

  Stamped() = default;
  Stamped(void* block, std::size_t n, unsigned value)
      : memory(static_cast<unsigned char*>(block)), bytes(n), stamp(static_cast<unsigned char>(value)) {
    write(0);
  }
  void write(std::size_t from) { std::memset(memory + from, stamp, bytes - from); }
  [[nodiscard]] bool intact() const {
    return bytes == 0 || (memory[0] == stamp && std::memcmp(memory, memory + 1, bytes - 1) == 0);
  }
};

[[nodiscard]] inline bool all_zero(const void* memory, std::size_t bytes) {
  const auto* p = static_cast<const unsigned char*>(memory);
  return bytes == 0 || (p[0] == 0 && std::memcmp(p, p + 1, bytes - 1) == 0);
}

}  // namespace freehold::test
