// SPDX-License-Identifier: MIT
// Support for the tests of arena and core: page sources that fail on request and can be looked into, a clock that is set
// by hand, a small configuration, and a thread's way through a core without the engine around it.
#pragma once
#include <sys/mman.h>

#include <mutex>

#include "freehold/alloc/config.hpp"
#include "freehold/alloc/core.hpp"
#include "freehold/os/pages.hpp"
#include "freehold/sync/atomics.hpp"
#include "tests/support/heap_errors.hpp"
#include "tests/support/test.hpp"

namespace freehold::test {

// The system's pages, of which the k-th request fails. Everything is unmapped at the end; a range that is purged, moved or
// unmapped without being mapped is an error of the engine.
class FakePages {
 public:
  bool locks_all = false;  // as after mlockall(MCL_FUTURE)

  // The last three are advice: a refusal is not told.
  enum Kind : unsigned {
    kPlace,
    kMapAt,
    kMap,
    kUnmap,
    kPurge,
    kRemap,
    kMoveOnto,
    kMoveOut,
    kAdviseHuge,
    kPopulate,
    kName,
    kKinds
  };
  static constexpr unsigned kAnswered = kAdviseHuge;  // kinds below tell whether they were refused
  struct Call {
    std::uintptr_t address;
    std::size_t bytes;
    bool wanted;  // advice about huge pages is wanted
  };
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  FakePages() = default;
  FakePages(const FakePages&) = delete;
  FakePages& operator=(const FakePages&) = delete;
  ~FakePages() {
    for (const auto& [start, end] : ranges_) os::Pages::release(reinterpret_cast<void*>(start), end - start);
    for (const auto& [start, bytes] : guards_) os::Pages::release(start, bytes);
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
  // Calls that succeeded.
  [[nodiscard]] const std::vector<Call>& purges() const { return log_[kPurge]; }
  [[nodiscard]] const std::vector<Call>& huge_advice() const { return log_[kAdviseHuge]; }
  void forget_log() {
    for (auto& calls : log_) calls.clear();
  }
  [[nodiscard]] std::size_t mapped_bytes() const {
    std::size_t sum = 0;
    for (const auto& [start, end] : ranges_) sum += end - start;
    return sum;
  }
  // As the kernel sees them.
  [[nodiscard]] std::size_t resident_bytes() const {
    std::size_t sum = 0;
    for (const auto& [start, end] : ranges_) {
      std::vector<unsigned char> pages((end - start + os::page_bytes() - 1) / os::page_bytes());
      EXPECT_EQ(::mincore(reinterpret_cast<void*>(start), end - start, pages.data()), 0);
      for (const unsigned char page : pages) sum += (page & 1) != 0 ? os::page_bytes() : 0;
    }
    return sum;
  }

  // The most at any unmap from now on.
  void watch_residence() { watches_ = true; }
  [[nodiscard]] std::size_t most_resident_bytes() const { return most_resident_; }

  void* place(unsigned attempt, std::size_t bytes, std::size_t alignment) noexcept {
    return allowed(kPlace) ? os::Pages::place(attempt, bytes, alignment) : nullptr;
  }
  bool map_at(void* address, std::size_t bytes) noexcept {
    return allowed(kMapAt) && os::Pages::map_at(address, bytes) && add(address, bytes) != nullptr;
  }
  void* map(std::size_t bytes) noexcept {
    if (!allowed(kMap)) return nullptr;
    return add(os::Pages::map(bytes), bytes);
  }
  bool unmap(void* address, std::size_t bytes) noexcept {
    if (watches_) most_resident_ = std::max(most_resident_, resident_bytes());
    if (!allowed(kUnmap)) return false;
    EXPECT_TRUE(is_ours(address, bytes)) << "unmapping what is not ours: " << address << ", " << bytes;
    forget(address, bytes);  // before others may get the place
    return os::Pages::unmap(address, bytes);
  }
  bool purge(void* address, std::size_t bytes) noexcept {
    if (!allowed(kPurge)) return false;
    EXPECT_TRUE(is_ours(address, bytes)) << "purging what is not ours: " << address << ", " << bytes;
    return os::Pages::purge(address, bytes) && note(kPurge, address, bytes);
  }
  void* remap(void* mapping, std::size_t bytes, std::size_t new_bytes) noexcept {
    if (!allowed(kRemap)) return nullptr;
    EXPECT_TRUE(is_ours(mapping, bytes)) << "remapping what is not ours";
    forget(mapping, bytes);
    void* const moved = os::Pages::remap(mapping, bytes, new_bytes);
    return moved != nullptr ? add(moved, new_bytes) : (add(mapping, bytes), nullptr);
  }
  bool move_onto(void* to, void* from, std::size_t bytes) noexcept {
    EXPECT_TRUE(is_ours(from, bytes)) << "moving what is not ours";
    EXPECT_TRUE(is_ours(to, bytes)) << "moving onto what is not ours";
    const bool moves = allowed(kMoveOnto);
    forget(from, bytes);
    if (moves) return os::Pages::move_onto(to, from, bytes);
    forget(to, bytes);  // a move that was refused half-way leaves neither
    (void)os::Pages::unmap(from, bytes);
    return !os::Pages::unmap(to, bytes);
  }
  void* move_out(void* from, std::size_t bytes, std::size_t new_bytes) noexcept {
    if (!allowed(kMoveOut)) return nullptr;
    EXPECT_TRUE(is_ours(from, bytes)) << "moving what is not ours";
    return add(os::Pages::move_out(from, bytes, new_bytes), new_bytes);
  }
  void advise_huge(void* address, std::size_t bytes, bool wanted) noexcept {
    if (allowed(kAdviseHuge)) note(kAdviseHuge, address, bytes, wanted);
  }
  void populate(void* address, std::size_t bytes) noexcept {
    if (allowed(kPopulate)) note(kPopulate, address, bytes);
  }
  void name(void* address, std::size_t bytes, const char* what) noexcept {
    EXPECT_NE(what, nullptr);
    EXPECT_TRUE(is_ours(address, bytes)) << "naming what is not ours";
    (void)allowed(kName);
  }
  bool is_locked(void*) noexcept { return locks_all; }
  std::size_t address_limit() noexcept { return SIZE_MAX; }
  std::uint64_t mappings = 0;  // that a process may have
  std::uint64_t most_mappings() noexcept { return mappings; }
  bool guard_at(void* address, std::size_t bytes) noexcept {
    const std::lock_guard guard(lock_);
    if (!os::Pages::guard_at(address, bytes)) return false;
    guards_.emplace_back(address, bytes);
    return true;
  }

 private:
  [[nodiscard]] bool allowed(Kind kind) noexcept {
    const std::lock_guard guard(lock_);
    ++calls_[kind];
    if (fail_kind_ != kKinds ? fail_kind_ != kind : kind >= kAnswered) return true;
    ++counted_;
    if (counted_ < fail_first_ || counted_ > fail_last_) return true;
    errno = ENOMEM;
    return false;
  }
  bool note(Kind kind, void* address, std::size_t bytes, bool wanted = true) noexcept {
    const std::lock_guard guard(lock_);
    log_[kind].push_back({reinterpret_cast<std::uintptr_t>(address), bytes, wanted});
    return true;
  }
  // Neighbouring ranges are joined.
  void* add(void* address, std::size_t bytes) noexcept {
    if (address == nullptr) return nullptr;
    const std::lock_guard guard(lock_);
    auto start = reinterpret_cast<std::uintptr_t>(address), end = start + bytes;
    if (const auto next = ranges_.find(end); next != ranges_.end()) {
      end = next->second;
      ranges_.erase(next);
    }
    const auto next = ranges_.lower_bound(start);
    if (next != ranges_.begin() && std::prev(next)->second == start)
      std::prev(next)->second = end;
    else
      ranges_[start] = end;
    return address;
  }
  void forget(void* address, std::size_t bytes) noexcept {
    const std::lock_guard guard(lock_);
    const auto start = reinterpret_cast<std::uintptr_t>(address), end = start + bytes;
    auto range = ranges_.upper_bound(start);
    if (range == ranges_.begin()) return;
    --range;
    const std::uintptr_t range_end = range->second;
    if (range->first == start)
      ranges_.erase(range);
    else
      range->second = start;
    if (end < range_end) ranges_[end] = range_end;
  }
  [[nodiscard]] bool is_ours(void* address, std::size_t bytes) noexcept {
    const std::lock_guard guard(lock_);
    const auto start = reinterpret_cast<std::uintptr_t>(address);
    const auto next = ranges_.upper_bound(start);
    return next != ranges_.begin() && start + bytes <= std::prev(next)->second;
  }

  std::mutex lock_;
  std::map<std::uintptr_t, std::uintptr_t> ranges_;  // [start, end)
  std::vector<std::pair<void*, std::size_t>> guards_;
  std::vector<Call> log_[kKinds];
  std::atomic<std::uint64_t> calls_[kKinds]{};
  std::atomic<std::uint64_t> counted_{0};
  std::uint64_t fail_first_ = kNever, fail_last_ = kNever;
  unsigned fail_kind_ = kKinds;
  bool watches_ = false;
  std::size_t most_resident_ = 0;
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
  static constexpr unsigned kChunkSpans = 16;  // 1 MiB
  static constexpr std::size_t kHugeAfterBytes = std::size_t{512} << 10;
  static constexpr std::uint32_t kMaxExtentChunks = 4;
  static constexpr std::size_t kTableStepSpans = 64;
  static constexpr unsigned kShards = 4;
  static constexpr std::int64_t kKeepBytes = std::int64_t{1} << 20;
  static constexpr std::size_t kThreadMaxBytes = 512 * 1024;
};

inline constexpr std::size_t kSpan = std::size_t{1} << SmallConfig::kSpanShift;
inline constexpr std::size_t kChunk = kSpan * SmallConfig::kChunkSpans;
inline const std::size_t kPagesPerSpan = kSpan / SmallConfig::page_bytes();

[[nodiscard]] inline alloc::ArenaSettings small_settings(std::size_t capacity_bytes = std::size_t{32} << 20) {
  return {.capacity_bytes = capacity_bytes, .purge_delay_ms = 500, .huge_pages = alloc::HugePages::kOff};
}

[[nodiscard]] inline alloc::ArenaSettings limited(std::size_t bytes) {
  alloc::ArenaSettings settings = small_settings(std::size_t{64} << 20);
  settings.limit_bytes = bytes;
  return settings;
}

// A core with its pages, and blocks in it by size, as the engine hands them out. It has one thread; others attach a Thread
// each.
template <class A = sync::NativeAtomics, class Config = SmallConfig>
class TestCore {
 public:
  using Core = alloc::Core<A, Config, FakePages, FakeClock>;
  using Cache = typename Core::Cache;
  using Classes = typename Config::Classes;
  static constexpr std::size_t kBudget = std::size_t{1} << 20;

  explicit TestCore(const alloc::ArenaSettings& settings = small_settings(), std::size_t budget = kBudget, unsigned cpus = 1)
      : core_(std::make_unique<Core>()) {
    gate.init();
    ready_ = core_->init(pages, settings, budget, cpus, &gate);
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
  [[nodiscard]] alloc::SizeClass class_of(const void* block) {
    const std::size_t span = (reinterpret_cast<std::uintptr_t>(block) - arena().base()) >> Config::kSpanShift;
    return alloc::SizeClass{span < arena().span_count() ? arena().span_classes()[span].load(std::memory_order_relaxed)
                                                        : std::uint32_t{0}};
  }
  [[nodiscard]] std::size_t usable(const void* block) {
    const alloc::SizeClass c = class_of(block);
    return c.is_slot() ? Classes::slot_bytes(c) : core_->blocks().large_bytes(block);
  }

  FakePages pages;
  typename Core::Gate gate;

 private:
  std::unique_ptr<Core> core_;
  bool ready_ = false;
};

// Everything was freed and every thread left: not a slot, not a span is missing.
template <class Machine>
void expect_whole(Machine& machine) {
  EXPECT_TRUE(machine->check_invariants());
  EXPECT_TRUE(machine->check_accounts());
  (void)machine->relief().trim();
  EXPECT_TRUE(machine->check_invariants());
  EXPECT_TRUE(machine->check_accounts());
  const auto told = machine.arena().budget().figures();
  EXPECT_EQ(told.live, 0);
  EXPECT_EQ(told.class_spans, 0);
  EXPECT_EQ(told.returned, 0);
  EXPECT_EQ(told.direct, 0);
  EXPECT_EQ(told.kept, 0);
  const alloc::Stats s = machine.stats();
  EXPECT_EQ(s.small_span_bytes, 0U) << "spans still belong to a class";
  EXPECT_EQ(s.run_bytes, 0U);
  EXPECT_EQ(s.direct_bytes, 0U);
  EXPECT_EQ(s.free_dirty_bytes, 0U);
  EXPECT_EQ(s.threads, 0U);
}

// The engine does this for a thread: its cache, or the uncached paths without one.
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

  [[nodiscard]] void* allocate_class(alloc::SizeClass c) {
    if (cache_ == nullptr) return machine_->allocate_uncached(c);
    void* slot = cache_->pop(c);
    return slot != nullptr ? slot : machine_->refill(*cache_, c);
  }
  // Blocks above the classes only while inside, as the engine does it: others may empty what the thread keeps.
  class Inside {
   public:
    explicit Inside(Thread& thread) : thread_(thread) {
      if (thread_.cache_ == nullptr) return;
      const bool entered = thread_.machine_.gate.enter(thread_.cache_->inside, 0);
      EXPECT_TRUE(entered);
    }
    ~Inside() {
      if (thread_.cache_ != nullptr) thread_.machine_.gate.leave(thread_.cache_->inside);
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    Thread& thread_;
  };

  [[nodiscard]] void* allocate(std::size_t bytes) {
    const Inside inside(*this);
    bool zero = false;
    return bytes <= Classes::kMaxBytes ? allocate_class(Classes::class_of(bytes))
                                       : machine_->large().allocate_large(cache_, bytes, 1, zero);
  }
  [[nodiscard]] void* allocate_aligned(std::size_t alignment, std::size_t bytes) {
    const Inside inside(*this);
    if (alignment <= Classes::kMaxBytes)
      if (const alloc::SizeClass c = Classes::aligned_class_of(alignment, bytes); c.is_slot()) return allocate_class(c);
    bool zero = false;
    return machine_->large().allocate_large(cache_, std::max(bytes, Classes::kMaxBytes + 1), alignment, zero);
  }
  [[nodiscard]] void* resize(void* block, std::size_t bytes) {
    const Inside inside(*this);
    return machine_->large().resize_large(cache_, block, bytes);
  }
  void free(void* block) {
    const Inside inside(*this);
    const alloc::SizeClass c = block == nullptr ? alloc::SizeClass{} : machine_.class_of(block);
    if (!c.is_slot()) return machine_->free_large(cache_, block);
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
