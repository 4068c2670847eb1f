// SPDX-License-Identifier: MIT
// The functions of engine.hpp: the slow halves of malloc and free, and the rest of the family. engine_state.hpp lists the
// other files of the process's engine.
#include "freehold/alloc/engine.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "freehold/alloc/engine_state.hpp"
#include "freehold/base/keep_errno.hpp"
#include "freehold/check/call_stacks.hpp"
#include "freehold/os/sandbox.hpp"
#include "freehold/os/text_line.hpp"

namespace freehold::alloc {

constinit NativeCore g_core;
constinit std::uintptr_t g_base = 0;
constinit std::atomic<std::size_t> g_span_count{0};
constinit const std::atomic<std::uint8_t>* g_span_classes = nullptr;
constinit std::atomic<std::uint8_t> engine::g_perturb{0};

using namespace engine;

constexpr std::size_t kRoomShare = 4;  // part of a large block that realloc moves, for its growth

namespace {

// Once: a program that meets its limit does so again and again.
[[gnu::cold]] void report_limit() noexcept {
  static constinit std::atomic<bool> reported{false};
  static constexpr char kLine[] = "freehold: the memory limit is reached (FREEHOLD_LIMIT_BYTES or freehold_set_limit)\n";
  if (os::is_confined() || reported.exchange(true, std::memory_order_relaxed)) return;
  os::write_to_standard_error(kLine, sizeof kLine - 1);
}

}  // namespace

SizeClass engine::size_class_of(const void* block) noexcept {
  const std::size_t span = (reinterpret_cast<std::uintptr_t>(block) - g_core.arena().base()) >> NativeConfig::kSpanShift;
  return span < span_count() ? g_core.arena().slots().slot_class_of_span(static_cast<SpanIndex>(span)) : SizeClass{};
}

void* engine::out_of_memory() noexcept {
  if (g_core.arena().purge().limit_was_met()) report_limit();
  errno = ENOMEM;
  return nullptr;
}

namespace {

// Blocks above the fast path's table come here, too, and most find a slot: look before anything is saved on the stack. The
// caches of threads without one are empty, and so are those of threads whose blocks are to be filled.
[[nodiscard, gnu::always_inline]] inline void* allocate_class(SizeClass c, std::size_t bytes,
                                                              std::size_t alignment) noexcept {
  NativeCache& cache = *t_cache;
  void* const slot = cache.pop(c);
  if (slot != nullptr) [[likely]]
    return slot;
  return cache.slow.load(std::memory_order_relaxed)->allocate(cache, c, bytes, alignment);
}

// `zero` and `room` as in LargeBlocks::allocate_large(). During another thread's fork the block is a new mapping, and `zero`
// stays as it is.
[[nodiscard]] void* allocate_run(std::size_t bytes, std::size_t alignment, bool& zero, std::size_t room = 0) noexcept {
  NativeCache* const cache = own_cache();  // for its mark, which no other thread writes; and it starts the engine
  if (g_start.load(std::memory_order_acquire) != Start::kReady) return out_of_memory();
  if (cache != nullptr)
    consider_purger();
  else if (t_cache == &g_modes.cpu)
    consider_purger(sharing_threads());
  const bool is_sampled = is_sample_due(bytes);
  const std::uint32_t stack = is_sampled ? check::note_call_stack() : 0;
  return allocate_inside(cache, bytes, alignment, [=, &zero] {
    void* const block = g_core.large().allocate_large(cache, bytes, alignment, zero, room);
    if (is_sampled && block != nullptr) profile::add(block, bytes, bytes, stack);
    return block;
  });
}

}  // namespace

namespace {

// Memory is short, or another thread forks.
[[gnu::cold, gnu::noinline]] void* refill_patiently(NativeCache& cache, SizeClass c, std::size_t bytes,
                                                    std::size_t alignment) noexcept {
  void* const slot = take_inside(&cache, bytes, alignment, [&cache, c] { return g_core.refill(cache, c); });
  return slot != nullptr ? slot : out_of_memory();
}

}  // namespace

void* engine::allocate_plain(NativeCache& cache, SizeClass c, std::size_t bytes, std::size_t alignment) noexcept {
  void* slot = nullptr;
  if (const Inside inside(cache); inside) [[likely]]
    slot = g_core.refill(cache, c);
  if (slot == nullptr) [[unlikely]]
    slot = refill_patiently(cache, c, bytes, alignment);
  if (slot == nullptr) [[unlikely]]
    return nullptr;
  // After the refill, which expects an empty bin: both may call malloc and free.
  consider_purger();
  look_if_due(bytes);
  return slot;
}

// POSIX: free leaves errno alone. What makes system calls in there sees to it.
void engine::free_plain(NativeCache& cache, SizeClass c, void* slot) noexcept {
  if (const Inside inside(cache); inside) [[likely]]
    return g_core.drain(cache, c, slot);
  const base::KeepErrno keep;
  defer_free(static_cast<Freed*>(slot));
}

namespace {

// Runs f(cache) inside the gate for a thread whose calls are not observed, and which keeps runs; else nothing.
template <class F>
[[gnu::always_inline]] inline auto with_kept_runs(F&& f) noexcept -> decltype(f(*t_cache)) {
  NativeCache& cache = *t_cache;
  decltype(f(cache)) result{};
  // Relaxed: a mode, it publishes nothing. Not quiet: during another call of this thread, which goes on after us.
  if (cache.slow.load(std::memory_order_relaxed) != &kPlain || cache.runs == nullptr || !Gate::is_quiet(cache.inside))
    return result;
  ++t_fork.inside;  // first and last, as in Inside
  sync::NativeAtomics::light_fence();
  if (g_gate.enter(cache.inside, t_fork.forks)) [[likely]] {
    result = f(cache);
    g_gate.leave(cache.inside);
  }
  sync::NativeAtomics::light_fence();
  --t_fork.inside;
  return result;
}

// A run that the thread keeps, or null.
[[gnu::always_inline]] inline void* allocate_kept(std::size_t bytes) noexcept {
  if (bytes - 1 >= NativeConfig::kMostRunBytes) return nullptr;
  return with_kept_runs([=](auto& cache) { return g_core.kept().allocate_kept(cache, bytes); });
}
// The mapping that the thread keeps, or null.
[[gnu::always_inline]] inline void* allocate_mapped(std::size_t bytes) noexcept {
  const bool fits = bytes > NativeConfig::kMostRunBytes && bytes <= NativeCore::Kept::kMostMappedBytes;
  if (!fits || !t_cache->may_have_mapping) return nullptr;
  return with_kept_runs([=](auto& cache) { return g_core.kept().allocate_mapped(cache, bytes); });
}

[[gnu::noinline]] void* allocate_above_classes(std::size_t bytes) noexcept {
  if (void* const block = allocate_mapped(bytes); block != nullptr) return block;
  if (is_unusual()) [[unlikely]]
    return filled(allocate_unusual({bytes, 0, Family::kMalloc}, false), bytes);
  if (bytes == 0) return allocate_class(SizeClass{1}, 1, 1);
  bool zero = false;
  return filled(allocate_run(bytes, 1, zero), bytes);
}

}  // namespace

void* allocate_slow(std::size_t bytes) noexcept {
  if (bytes - 1 < Classes::kMaxBytes) [[likely]]
    return allocate_class(Classes::class_of(bytes), bytes, 1);
  if (void* const block = allocate_kept(bytes); block != nullptr) return block;
  return allocate_above_classes(bytes);
}

namespace {

// Frees a run, a direct block, or a checked block.
[[gnu::noinline]] void deallocate_large(void* block) noexcept {
  if (is_unusual() && deallocate_unusual(block, Claim{})) return;
  if (check::is_guarded(block)) return check::free_guarded(block);
  const base::KeepErrno keep;
  if (const std::uint8_t byte = g_perturb.load(std::memory_order_relaxed); byte != 0)  // relaxed: as in filled()
    std::memset(block, byte, usable_size(block));
  if (g_fork_blocks.free(g_pages, block)) return;
  NativeCache* const cache = present_cache();
  const Inside inside(cache);
  if (!inside) return defer_free(static_cast<Freed*>(block));
  free_large(cache, block);
}

// Frees a block that is not in the arena: most often the one that the thread mapped last.
[[gnu::noinline]] void deallocate_mapped(void* block) noexcept {
  if (!t_cache->is_last_mapped(block) || !with_kept_runs([=](auto& cache) { return g_core.free_mapped(cache, block); }))
    return deallocate_large(block);
  if (g_core.arena().due().something()) g_purger.wake();
}

}  // namespace

void deallocate_slow(void* block) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  const std::size_t span = (address - g_core.arena().base()) >> NativeConfig::kSpanShift;
  if (span >= span_count()) return block != nullptr ? deallocate_mapped(block) : void();
  const SizeClass c{g_core.arena().span_classes()[span].load(std::memory_order_relaxed)};
  if (c.is_slot()) return c != NativeCache::kOfHeaps ? deallocate_slot(c, block) : free_of_heap(block);
  // The base is a multiple of a span. A large block that does not begin where a run's does may be one of a heap.
  const auto run = g_core.arena().runs().run(static_cast<SpanIndex>(span));
  if (address % NativeCore::ArenaType::kSpanBytes != run.colour()) {
    if (!is_unusual() || !free_in_heap(block)) deallocate_large(block);
    return;
  }
  if (!with_kept_runs([=](auto& cache) { return g_core.free_kept(cache, static_cast<SpanIndex>(span)); }))
    return deallocate_large(block);
  if (g_core.arena().due().something()) g_purger.wake();
}

// ---- engine.hpp -------------------------------------------------------------------------------------------------------

void* allocate(std::size_t bytes) noexcept { return allocate_inline(bytes); }

void deallocate(void* block) noexcept { deallocate_inline(block); }

namespace {

constexpr std::size_t kPage = 4096;  // the smallest of any kernel

// True if a program has written to more than a few of some pages: to two of four that lie as far apart as multiples of the
// golden ratio do. One alone may be a page that is looked at by chance.
[[nodiscard]] bool is_much_written(const char* first, std::size_t bytes) noexcept {
  constexpr std::uint32_t kLooks = 4, kEnough = 2;
  unsigned written = 0;
  for (std::uint32_t i = 1; i <= kLooks && written < kEnough; ++i)
    written += os::is_zero(first + (std::uint64_t{i * base::kGoldenRatio} * (bytes / kPage) >> 32) * kPage, kPage) ? 0 : 1;
  return written == kEnough;
}

}  // namespace

// Pages that are given back come again when they are written, each by a fault; cleared ones stay. On a virtual machine of
// 2026 a fault takes 1 us, clearing a page 0.09 us in 1 MiB and 0.17 us in 16 MiB, giving it back 0.08 us: for a program
// that writes to an eighth of a block's pages both take the same time, in 1 MiB as in 32. A look at a page that is not
// there takes as long as a fault.
void clear(void* block, std::size_t bytes) noexcept {
  auto* const begin = static_cast<char*>(block);
  if (bytes > NativeConfig::kMostRunBytes) {
    const base::KeepErrno keep;
    const auto address = reinterpret_cast<std::uintptr_t>(begin);
    const std::size_t before = base::align_up(address, os::page_bytes()) - address;
    const std::size_t pages = base::align_down(bytes - before, os::page_bytes());
    char* const first = begin + before;
    if (!is_much_written(first, pages) && os::Pages::purge(first, pages)) {
      std::memset(begin, 0, before);
      std::memset(first + pages, 0, bytes - before - pages);
      return;
    }
  }
  std::memset(begin, 0, bytes);
}

namespace {

[[nodiscard]] void* allocate_zeroed_run(std::size_t bytes) noexcept {
  bool zero = true;  // as it stays where another thread forks
  void* const block = allocate_run(bytes, 1, zero);
  if (block == nullptr || zero) return block;
  const auto begin = reinterpret_cast<std::uintptr_t>(block);
  clear(block, base::align_up(begin + bytes, os::page_bytes()) - begin);
  return block;
}

[[nodiscard]] void* allocate_aligned_usual(std::size_t alignment, std::size_t bytes) noexcept {
  if (bytes == 0) bytes = 1;
  if (alignment <= Classes::kMaxBytes && bytes <= Classes::kMaxBytes)
    if (const SizeClass c = Classes::aligned_class_of(alignment, bytes); c.is_slot())
      return allocate_class(c, bytes, alignment);
  bool zero = false;
  return filled(allocate_run(std::max(bytes, Classes::kMaxBytes + 1), alignment, zero), bytes);
}

}  // namespace

void* engine::allocate_usual(const check::Request& request, bool zeroed) noexcept {
  if (request.alignment > kAlignment) return allocate_aligned_usual(request.alignment, request.bytes);
  const std::size_t bytes = std::max<std::size_t>(request.bytes, 1);
  if (bytes <= Classes::kMaxBytes) {
    void* const slot = allocate_class(Classes::class_of(bytes), bytes, 1);
    return slot == nullptr || !zeroed ? slot : std::memset(slot, 0, bytes);
  }
  if (zeroed) return allocate_zeroed_run(bytes);
  bool zero = false;
  return filled(allocate_run(bytes, 1, zero), bytes);
}

void* allocate_zeroed(std::size_t bytes) noexcept {
  if (bytes <= Classes::kMaxBytes) {
    void* slot = allocate_inline(bytes);
    return slot == nullptr ? nullptr : std::memset(slot, 0, bytes);
  }
  return is_unusual() ? allocate_unusual({bytes, 0, Family::kMalloc}, true) : allocate_zeroed_run(bytes);
}

void* allocate_aligned(std::size_t alignment, std::size_t bytes) noexcept {
  if (alignment <= 16) return allocate_inline(bytes);
  return is_unusual() ? filled(allocate_unusual({bytes, alignment, Family::kMalloc}, false), bytes)
                      : allocate_aligned_usual(alignment, bytes);
}

std::size_t usable_size(const void* block) noexcept {
  if (block == nullptr) return 0;
  if (is_checked() && !check::is_guarded(block)) {
    const std::size_t in_heap = usable_size_in_heap(block);
    return in_heap != 0 ? in_heap : checked_usable_size(block);
  }
  const SizeClass c = size_class_of(block);
  if (c.is_slot()) return Classes::slot_bytes(c);
  if (check::is_guarded(block)) return check::guarded_bytes(block);
  // A sampled slot's block is as large as the slot to the program.
  if (profile::was_started())
    if (const std::size_t bytes = profile::size_of(block); bytes != 0 && bytes <= Classes::kMaxBytes) return bytes;
  const std::size_t bytes = g_core.blocks().large_bytes(block);
  if (bytes != 0) return bytes;
  const std::size_t in_heap = usable_size_in_heap(block);
  return in_heap != 0 ? in_heap : g_fork_blocks.bytes_of(block);
}

namespace {

[[nodiscard]] void* resize(void* block, std::size_t old, std::size_t bytes) noexcept {
  const base::KeepErrno keep;
  look_if_due(bytes - std::min(old, bytes));
  NativeCache* const cache = present_cache();
  if (!profile::was_started()) {
    const Inside inside(cache);
    return inside ? g_core.large().resize_large(cache, block, bytes) : nullptr;
  }
  return resize_sampled(cache, block, bytes);
}

// Inside the gate, so that no fork comes during it. During another thread's fork the sample keeps its size.
void resize_sample(void* block, std::size_t bytes) noexcept {
  const base::KeepErrno keep;
  if (const Inside inside(present_cache()); inside) profile::resize(block, bytes);
}

// A block that grows will grow again. `zero`: whether it reads as zero.
[[nodiscard]] void* allocate_with_room(std::size_t bytes, bool& zero) noexcept {
  void* const block = filled(allocate_run(bytes, 1, zero, bytes / kRoomShare), bytes);
  zero = zero && g_perturb.load(std::memory_order_relaxed) == 0;  // relaxed: as in filled()
  return block;
}

// Pages that read as zero on both sides are left alone: untouched pages stay without memory. `to_is_zero`: all of `to` does,
// and is not looked at, since that costs a fault for each page.
void copy_pages(char* to, const char* from, std::size_t bytes, bool to_is_zero) noexcept {
  bool some_zero = false;
  for (; bytes >= kPage; bytes -= kPage, to += kPage, from += kPage) {
    if (!os::is_zero(from, kPage)) {
      std::memcpy(to, from, kPage);
      continue;
    }
    if (!std::exchange(some_zero, true)) {  // more will follow
      os::Pages::populate_to_read(from, bytes);
      if (!to_is_zero) os::Pages::populate_to_read(to, bytes);
    }
    if (!to_is_zero && !os::is_zero(to, kPage)) std::memset(to, 0, kPage);
  }
  std::memcpy(to, from, bytes);
}

}  // namespace

void* reallocate(void* block, std::size_t bytes) noexcept {
  if (block == nullptr) return allocate_inline(bytes);
  if (is_unusual()) [[unlikely]] {
    if (is_in_heap(block)) return reallocate_in_heap(block, bytes);
    if (Detour* const detour = present_detour(); detour != nullptr) return reallocate_counted(*detour, block, bytes);
  }
  const bool is_guarded = check::is_guarded(block);
  if (is_checked() && !is_guarded) return reallocate_checked(block, bytes);
  if (bytes == 0) bytes = 1;
  const std::size_t old = usable_size(block);
  if (old == 0) {
    if (!check::is_guarded(block)) g_core.blocks().report(block);  // or usable_size() did
    return out_of_memory();
  }
  if (old > Classes::kMaxBytes) {
    if (bytes > Classes::kMaxBytes)
      if (void* moved = resize(block, old, bytes); moved != nullptr) return moved;
  } else if (bytes <= old && bytes >= old / 2 && (!is_guarded || (bytes == old && !is_checked()))) {
    if (profile::was_started()) resize_sample(block, bytes);
    return block;  // a smaller slot would save less than half
  }
  const bool grows_large = bytes > std::max(old, Classes::kMaxBytes) && !is_checked();  // where each block is known
  bool zero = false;
  void* const fresh = grows_large ? allocate_with_room(bytes, zero) : allocate_inline(bytes);
  if (fresh == nullptr) return bytes <= old ? block : nullptr;
  const std::size_t kept = std::min(old, bytes);
  if (kept > Classes::kMaxBytes)
    copy_pages(static_cast<char*>(fresh), static_cast<const char*>(block), kept, zero);
  else
    std::memcpy(fresh, block, kept);
  deallocate_inline(block);
  return fresh;
}

void set_perturbation(std::uint8_t byte) noexcept {
  g_perturb.store(byte, std::memory_order_relaxed);
  choose_slow_calls();
  const Uncounted uncounted;
  follow_perturbation_mode();
}

namespace {

// In steps, so that a fork need not wait for all of them.
std::size_t trim_in_steps(NativeCache* cache) noexcept {
  std::size_t bytes = 0;
  bool more = true;
  for (unsigned refused = 0; more && refused < kForkTries;) {
    wait_for_forks();
    if (const Inside inside(cache); inside)
      more = g_core.relief().trim_step(bytes);
    else
      ++refused;  // another fork
  }
  return bytes;
}

}  // namespace

std::size_t trim() noexcept {
  const Uncounted uncounted;
  NativeCache* const cache = own_cache();
  if (g_start.load(std::memory_order_acquire) != Start::kReady) return 0;
  wait_for_forks();
  {
    const Inside inside(cache);
    if (!inside) return 0;
    if (cache != nullptr) g_core.flush(*cache);
    if (t_cache == &g_modes.cpu) g_cpu_caches.flush();
    g_core.relief().reclaim_all_runs(cache);
  }
  return trim_heaps() + trim_in_steps(cache);
}

std::size_t idle() noexcept {
  if (g_start.load(std::memory_order_acquire) != Start::kReady) return 0;
  NativeCache* const cache = present_cache();
  {
    const Inside inside(cache);
    if (!inside) return 0;
    if (cache != nullptr) g_core.flush(*cache);
  }
  return g_core.arena().due().something() || g_core.keeps_mappings() ? trim_in_steps(cache) : 0;
}

bool is_worth_moving(const void* block) noexcept {
  if (g_start.load(std::memory_order_acquire) != Start::kReady || is_checked()) return false;
  const Uncounted uncounted;
  NativeCache* const cache = own_cache();
  if (cache == nullptr) return false;
  const base::KeepErrno keep;
  const Inside inside(cache);
  return inside && g_core.moving().is_worth(*cache, block);
}

std::size_t set_limit(std::size_t bytes) noexcept {
  if (g_start.load(std::memory_order_acquire) != Start::kReady && !start()) return SIZE_MAX;
  const std::size_t former = g_core.arena().purge().set_limit(bytes == SIZE_MAX ? 0 : std::max(bytes, std::size_t{1}));
  return former == 0 ? SIZE_MAX : former;
}

void stats(Stats& out) noexcept {
  const Reading reading;
  g_core.stats(out);
  out.cpus = g_cpus.cpus;
  std::strcpy(out.cpus_source, g_cpus.source);
  const sync::Guard guard(g_start_lock);
  std::strcpy(out.cache_mode,
              g_cpu_caches.ready() ? (g_options.cache == CacheMode::kCpu ? "cpu" : "thread, cpu") : "thread");
  static constexpr const char* kHuge[] = {"off", "auto", "on"};
  std::strcpy(out.huge_pages, kHuge[static_cast<int>(g_options.huge_pages)]);
}

}  // namespace freehold::alloc