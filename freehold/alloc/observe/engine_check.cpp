// SPDX-License-Identifier: MIT
// Checked mode on the process's engine; see checked.hpp.
#include <sys/random.h>

#include <algorithm>
#include <ctime>

#include "freehold/alloc/engine_state.hpp"
#include "freehold/alloc/observe/checked.hpp"
#include "freehold/base/keep_errno.hpp"
#include "freehold/check/call_stacks.hpp"
#include "freehold/check/checked_blocks.hpp"
#include "freehold/check/leaks.hpp"
#include "freehold/check/runtime_blocks.hpp"
#include "freehold/os/libc.hpp"
#include "freehold/os/modules.hpp"
#include "freehold/os/sandbox.hpp"
#include "freehold/os/system_call.hpp"

namespace freehold::alloc {

using namespace engine;

namespace {

// Raw blocks from the engine, without its caches.
struct RawBlocks {
  using Raw = BlockPlace;
  static constexpr unsigned kClasses = Classes::kCount;
  static constexpr std::size_t kPageBytes = os::kLargestPageBytes;

  [[nodiscard]] static unsigned class_of(std::size_t bytes, std::size_t alignment) noexcept {
    if (bytes > Classes::kMaxBytes || alignment > Classes::kMaxBytes) return 0;
    return (alignment <= 16 ? Classes::class_of(bytes) : Classes::aligned_class_of(alignment, bytes)).index();
  }
  [[nodiscard]] static std::size_t slot_bytes(unsigned c) noexcept { return Classes::slot_bytes(SizeClass{c}); }
  [[nodiscard]] static unsigned class_at(const void* raw) noexcept {
    const std::size_t span = (reinterpret_cast<std::uintptr_t>(raw) - g_base) >> NativeConfig::kSpanShift;
    return span < span_count() ? g_span_classes[span].load(std::memory_order_relaxed) : 0;
  }
  static std::size_t take(unsigned c, void** slots, std::size_t n) noexcept {
    return g_core.take_batch(SizeClass{c}, slots, n, 0);
  }
  static void give(unsigned c, void* const* slots, std::size_t n) noexcept { g_core.give_batch(SizeClass{c}, slots, n); }
  static void* allocate_large(std::size_t bytes, std::size_t alignment, bool& zero) noexcept {
    // Pages of it are sealed.
    return g_core.large().allocate_large(nullptr, std::max(bytes, Classes::kMaxBytes + 1),
                                         std::max(alignment, os::page_bytes()), zero);
  }
  static void free_large(void* raw) noexcept { g_core.free_large(nullptr, raw); }
  static void* resize_large(void* raw, std::size_t bytes) noexcept {
    return g_core.large().resize_large(nullptr, raw, bytes);
  }
  static std::size_t large_bytes(const void* raw) noexcept { return g_core.blocks().large_bytes(raw); }
  // If the system refuses, the block stays as it was, and its use is not detected.
  static void seal(void* pages, std::size_t bytes) noexcept {
    if (os::Pages::forbid(pages, bytes)) (void)os::Pages::purge(pages, bytes);
  }
  static void unseal(void* pages, std::size_t bytes) noexcept { (void)os::Pages::commit(pages, bytes); }
  static BlockPlace find(const void* address) noexcept { return g_core.blocks().block_around(address); }
  template <class F>
  static void for_each(F&& f) noexcept {
    g_core.blocks().for_each_block(f);
  }
};

constinit RawBlocks g_raw;
constinit check::CheckedBlocks<sync::NativeAtomics, RawBlocks> g_blocks;
// Held while guarded blocks are freed or looked at, by a thread inside the gate.
constinit sync::Mutex<sync::NativeAtomics> g_guarded_lock;
// The last that was allocated, and not looked at since; null: none. Changed under the lock; relaxed: outside a hint.
constinit std::atomic<const void*> g_last_guarded{nullptr};

[[nodiscard]] std::uint64_t random_word() noexcept {
  std::uint64_t random = 0;
  if (os::system_call(SYS_getrandom, &random, sizeof random, GRND_NONBLOCK) == sizeof random) return random;
  timespec now{};
  os::Libc::clock_gettime(CLOCK_MONOTONIC, &now);
  return check::mix(static_cast<std::uint64_t>(now.tv_nsec) ^ reinterpret_cast<std::uintptr_t>(&random));
}

// Returns how many blocks are damaged.
[[nodiscard]] std::size_t look_at_all() noexcept {
  const sync::Guard guard(g_guarded_lock);
  std::size_t damaged = g_blocks.check_all();
  check::for_each_guarded([&](const auto&, const void* block) { damaged += check::look_at_guarded(block) ? 1 : 0; });
  return damaged;
}

void check_at_exit() noexcept {
  const auto locks_are_free = [] {
    if (!g_guarded_lock.try_lock()) return false;
    g_guarded_lock.unlock();
    return g_blocks.locks_are_free() && g_core.registry().is_free();
  };
  // A filter of system calls need not allow getpid; a child that is forked behind one has 0 as g_process.
  const bool is_child = os::is_confined() ? g_process == 0 : os::kernel::getpid() != g_process;
  if (is_child || !comes_true_soon(locks_are_free)) return;
  const Inside inside(nullptr);
  if (!inside) return;
  (void)look_at_all();
  if (!g_options.check.leaks) return;
  const sync::Guard guard(g_guarded_lock);
  check::RuntimeBlocks runtime(g_pages);
  const auto add = [&](const check::Contents& contents, const void* block) { runtime.add(contents, block); };
  g_blocks.for_each_live(add, [&] {
    check::for_each_guarded(add);
    runtime.find();
  });
  check::LeakList leaks(g_pages);
  const auto list = [&](const check::Contents& contents, const void* block) {
    if (!os::is_standard_buffer(block) && !runtime.holds(block)) leaks.add(contents);
  };
  g_blocks.for_each_live(list, [&] { check::for_each_guarded(list); });
  leaks.write();
}

// Inside the gate, however long another thread's fork takes; but it may be waiting for a lock that this thread holds.
template <class F>
[[nodiscard]] bool run_inside(F&& f) noexcept {
  const base::KeepErrno keep;
  for (unsigned tries = 0; tries < kForkTries; ++tries) {
    if (const Inside inside(nullptr); inside) {
      f();
      return true;
    }
    wait_for_forks();
  }
  return false;
}

}  // namespace

constinit std::atomic<Mode> engine::g_mode{Mode::kNotYet};

bool engine::start_checks() noexcept {
  if (!g_options.check.on) {
    g_mode.store(Mode::kUsual, std::memory_order_relaxed);
    return true;
  }
  void* const memory = g_pages.map(base::align_up(decltype(g_blocks)::memory_bytes(g_options.check), os::kLargestPageBytes));
  if (memory == nullptr) return false;
  g_blocks.init(g_raw, g_options.check, memory, random_word());
  static constexpr check::SealedMemory kSealed{[](const void* address) { return g_blocks.is_sealed(address); },
                                               [](const void* address) { return g_blocks.report_access(address); }};
  check::watch_sealed_memory(kSealed);
  g_mode.store(Mode::kChecked, std::memory_order_release);  // for those that find it: the blocks are there
  return true;
}

void engine::finish_start_of_checks() noexcept {
  if (!g_options.check.on) return;
  std::atexit(check_at_exit);
}

void engine::checks_after_fork_in_child() noexcept {
  if (!is_checked()) return;
  g_guarded_lock.reset();
  g_blocks.after_fork_in_child();
}

bool is_checked() noexcept { return g_mode.load(std::memory_order_acquire) == Mode::kChecked; }

namespace {

void look_at_last_guarded() noexcept {
  if (g_last_guarded.load(std::memory_order_relaxed) == nullptr) return;
  (void)run_inside([] {
    const sync::Guard guard(g_guarded_lock);
    const void* const last = g_last_guarded.exchange(nullptr, std::memory_order_relaxed);
    if (last != nullptr && g_options.check.abort) (void)check::look_at_guarded(last);
  });
}

// A guarded block, if it is sampled; null: it is not. One of no bytes is inaccessible where it is not guarded.
[[nodiscard]] void* allocate_guarded(const check::Request& request, bool zeroed, std::uint32_t stack) noexcept {
  if (request.bytes == 0 || !check::is_guard_due(1)) return nullptr;
  (void)run_inside([] { g_blocks.look_at_last(); });
  void* const block = check::allocate_guarded(request.bytes, std::max(request.alignment, kAlignment), request, stack);
  if (block == nullptr) return nullptr;
  if (zeroed || g_options.check.contents >= 0) std::memset(block, zeroed ? 0 : g_options.check.contents, request.bytes);
  (void)run_inside([&] {
    const sync::Guard guard(g_guarded_lock);
    g_last_guarded.store(block, std::memory_order_relaxed);
  });
  return block;
}

[[nodiscard]] void* allocate_checked(const check::Request& request, bool zeroed) noexcept {
  finish_start();
  look_at_last_guarded();
  const std::uint32_t stack = check::keeps_call_stacks() ? check::note_call_stack() : check::kBeforeStacks;
  if (void* const block = allocate_guarded(request, zeroed, stack); block != nullptr) return block;
  void* block = nullptr;
  if (!run_inside([&] { block = g_blocks.allocate(request, zeroed, stack); }))
    block = g_fork_blocks.allocate(g_pages, request.bytes, std::max<std::size_t>(request.alignment, 1));
  return block != nullptr ? block : out_of_memory();
}

}  // namespace

void* engine::allocate_unusual(const check::Request& request, bool zeroed) noexcept {
  if (g_start.load(std::memory_order_acquire) != Start::kReady && !start()) return out_of_memory();
  if (Detour* const detour = present_detour(); detour != nullptr) return allocate_counted(*detour, request, zeroed);
  return is_checked() ? allocate_checked(request, zeroed) : allocate_usual(request, zeroed);
}

bool engine::deallocate_unusual(void* block, const Claim& claim) noexcept {
  if (is_of_heap(block)) {
    free_of_heap(block);
    return true;
  }
  if (free_in_heap(block)) return true;
  if (Detour* const detour = present_detour(); detour != nullptr && block != nullptr)
    free_counted(*detour, block, claim);
  else if (is_checked())
    deallocate_checked(block, claim);
  else
    return false;
  return true;
}

void* allocate_as(Family family, std::size_t bytes, std::size_t alignment) noexcept {
  if (is_unusual()) return allocate_unusual({bytes, alignment, family}, false);
  return alignment == 0 ? allocate_slow(bytes) : allocate_aligned(alignment, bytes);
}

void deallocate_as(void* block, const Claim& claim) noexcept {
  if (is_unusual() && deallocate_unusual(block, claim)) return;
  const SizeClass c = size_class_of(block);
  if (claim.bytes != Claim::kUnsaid) {
    const std::size_t usable = c.is_slot() ? g_core.arena().geometry(c).slot_bytes : usable_size(block);
    if (usable != 0 && claim.bytes > usable) return base::fatal(base::HeapError::kWrongSize, block);
  }
  c.is_slot() ? deallocate_slot(c, block) : deallocate_slow(block);
}

namespace {

// Returns whether the block was freed; false after a report of what the claim says.
[[nodiscard]] bool free_guarded(void* block, const Claim& claim) noexcept {
  const sync::Guard guard(g_guarded_lock);
  if (const check::Contents contents = check::guarded_contents(block);
      contents.bytes != 0 && !g_blocks.admit_elsewhere(block, contents, claim))
    return false;
  check::free_guarded(block);
  return true;
}

}  // namespace

bool deallocate_looked_at(void* block, const Claim& claim) noexcept {
  if (check::is_guarded(block)) {
    bool freed = true;
    (void)run_inside([&] { freed = free_guarded(block, claim); });
    return freed;
  }
  if (block == nullptr || g_fork_blocks.free(g_pages, block)) return true;
  const std::uint32_t stack = check::note_call_stack();
  bool freed = true;  // also where a fork of this very thread does not let it be: the block is left to itself
  (void)run_inside([&] { freed = g_blocks.deallocate(block, claim, stack); });
  return freed;
}

void engine::deallocate_checked(void* block, const Claim& claim) noexcept {
  if (!free_in_heap(block)) (void)deallocate_looked_at(block, claim);
}

void* engine::reallocate_checked(void* block, std::size_t bytes) noexcept {
  const std::uint32_t stack = check::note_call_stack();
  if (const std::size_t old = g_fork_blocks.bytes_of(block); old != 0) {
    void* const fresh = allocate_checked({bytes, 0, Family::kMalloc}, false);
    if (fresh == nullptr) return nullptr;
    std::memcpy(fresh, block, std::min(old, bytes));
    (void)g_fork_blocks.free(g_pages, block);
    return fresh;
  }
  void* fresh = nullptr;
  if (run_inside([&] { fresh = g_blocks.reallocate(block, bytes, stack); }))
    return fresh != nullptr ? fresh : out_of_memory();
  // A fork waits for a lock of the caller: the contents move, and the block is left to itself.
  fresh = allocate_checked({bytes, 0, Family::kMalloc}, false);
  if (fresh != nullptr && block != nullptr) std::memcpy(fresh, block, std::min(g_blocks.usable_size(block), bytes));
  return fresh;
}

std::size_t engine::checked_usable_size(const void* block) noexcept {
  const std::size_t bytes = g_fork_blocks.bytes_of(block);
  return bytes != 0 ? bytes : g_blocks.usable_size(block);
}

void report_blocks(const char* what, bool (*is_wanted)(const void* context, const void* block) noexcept,
                   const void* context) noexcept {
  (void)run_inside([&] {
    check::LeakList list(g_pages);
    g_blocks.for_each_live(
        [&](const check::Contents& contents, const void* block) {
          if (is_wanted(context, block)) list.add(contents);
        },
        [] {});
    list.write(what);
  });
}

std::size_t check_all() noexcept {
  std::size_t damaged = 0;
  if (is_checked()) (void)run_inside([&] { damaged = look_at_all(); });
  return damaged;
}

}  // namespace freehold::alloc
