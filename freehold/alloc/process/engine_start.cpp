// SPDX-License-Identifier: MIT
// The engine's first call: options, the arena, and what the process must be told; see engine.hpp.
#include <pthread.h>
#include <sys/auxv.h>

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "freehold/alloc/engine_state.hpp"
#include "freehold/alloc/observe/live_figures.hpp"
#include "freehold/alloc/observe/profile.hpp"
#include "freehold/base/check.hpp"
#include "freehold/base/keep_errno.hpp"
#include "freehold/check/call_stacks.hpp"
#include "freehold/check/guards.hpp"
#include "freehold/os/call_stack.hpp"
#include "freehold/os/libc.hpp"
#include "freehold/os/memory_file.hpp"
#include "freehold/os/process_memory.hpp"
#include "freehold/os/sandbox.hpp"
#include "freehold/os/system_call.hpp"
#include "freehold/os/text_line.hpp"
#include "freehold/os/threads.hpp"

// Belongs to freehold::malloc, if a program has linked it: malloc/sanitizers.cpp.
extern "C" [[gnu::weak]] void freehold_refuse_sanitizers() noexcept;

namespace freehold::alloc::engine {

constinit std::atomic<Start> g_start{Start::kNotYet};
constinit sync::Mutex<sync::NativeAtomics> g_start_lock;
constinit os::Pages g_pages;
constinit Options g_options;
constinit os::CpuCount g_cpus;
constinit CpuCaches<NativeCore, Classes> g_cpu_caches;
constinit pid_t g_process = 0;
constinit char* g_own_page = nullptr;

namespace {

// A separate function: their copy does not stay on the stack, which may be a coroutine's.
[[gnu::noinline]] void take_options() noexcept { g_options = read_options(); }

[[nodiscard]] ArenaSettings settings_for(const Options& options) noexcept {
  ArenaSettings s;
  s.purge_delay_ms = options.purge_delay_ms;
  s.huge_pages = options.huge_pages;
  s.prefault = options.prefault;
  s.limit_bytes = options.limit_bytes;
  s.stripes = ArenaSettings::stripes_for(g_cpus.cpus);
  s.chunk_stripes = ArenaSettings::chunk_stripes_for(g_cpus.cpus);
  // Room for overcommit and for what fragmentation costs in addresses; nothing is reserved.
  constexpr std::size_t kMost = NativeCore::ArenaType::kMaxCapacityBytes;
  const std::size_t memory = std::min(os::physical_memory_bytes(), kMost);
  s.capacity_bytes = std::clamp(std::bit_ceil(memory) * 8, std::size_t{1} << 36, kMost);
  return s;
}

// Bytes of all caches. `limit`: the kernel's, of which caches are a small part; 0: none.
[[nodiscard]] std::size_t cache_budget(std::uint64_t limit) noexcept {
  constexpr std::uint64_t kShare = 64;
  if (g_options.cache_bytes != 0) return g_options.cache_bytes;
  const std::size_t bytes = NativeConfig::budget_bytes(g_cpus.cpus);
  return limit == 0 ? bytes : std::min<std::size_t>(bytes, limit / kShare);
}

// A small limit is no place for huge pages: what is given back of one stays until the kernel splits it, which it does only
// when the limit is met.
void settle_huge_pages(std::uint64_t limit) noexcept {
  constexpr std::uint64_t kSmallLimit = std::uint64_t{256} << 20;
  if (limit != 0 && limit < kSmallLimit && g_options.huge_pages == HugePages::kAuto) g_options.huge_pages = HugePages::kOff;
}

// Written once, never read in this process.
[[gnu::used]] constinit LiveDirectory g_live{};

// For readers outside the process; see live_figures.hpp.
void publish_live_figures() noexcept {
  g_live.version = kLiveVersion;
  g_live.tables = g_core.live_tables();
  const auto add = [](LiveFigure figure, const auto& first, std::size_t count = 1, std::size_t stride = 0) {
    FREEHOLD_ASSERT(g_live.count < kMostLiveEntries);
    g_live.entries[g_live.count++] = {figure, sizeof first, static_cast<std::uint32_t>(count),
                                      static_cast<std::uint32_t>(stride), reinterpret_cast<std::uintptr_t>(&first)};
  };
  g_core.for_each_live_figure(add);
  if (is_checked()) g_profile_request.answer.store(profile::ProfileAnswer::kChecked, std::memory_order_relaxed);
  add(LiveFigure::kArenaBase, g_base);
  add(LiveFigure::kProfileDistance, profile::profiler::g_mean);
  add(LiveFigure::kProfileRequest, g_profile_request.command);
  for (unsigned half = 0; half < 2; ++half)
    g_live.mark[half].store(live_mark(half, reinterpret_cast<std::uintptr_t>(&g_live)), std::memory_order_release);
}

void write_stats_at_exit() noexcept {
  // A program that closes descriptors that it did not open may have another file under this number by now.
  if (!os::is_sealed_memory_file(g_options.stats_fd)) return;
  static Stats stats;
  alloc::stats(stats);
  const char* from = reinterpret_cast<const char*>(&stats);
  [[maybe_unused]] const auto written = os::kernel::pwrite(g_options.stats_fd, from, sizeof stats, 0);
}

// A double or interior free of a slot is seen when a cache is drained, and at the exit not all are: the process that ends
// normally looks at what they hold, those of threads that sleep included.
void look_at_caches_at_exit() noexcept {
  constexpr std::size_t kAFewSlots = 512;
  constexpr std::uint64_t kMostThreads = 64;  // two looks at each of them
  if (os::is_confined() || os::kernel::getpid() != g_process || g_core.registry().threads() > kMostThreads ||
      !comes_true_soon([] { return g_core.registry().is_free(); }))
    return;
  const Inside inside(nullptr);
  if (!inside) return;
  void* few[kAFewSlots];
  const std::size_t most = g_core.registry().most_slots(),
                    bytes = base::align_up(most * sizeof(void*), os::kLargestPageBytes);
  void** const many = most <= kAFewSlots ? nullptr : static_cast<void**>(g_pages.map(bytes));
  g_core.report_misuse_in_caches(present_cache(), many != nullptr ? many : few, many != nullptr ? most : kAFewSlots,
                                 os::stamp_of_sleeping_thread);
  if (many != nullptr) (void)g_pages.unmap(many, bytes);
}

void announce() noexcept {
  static constexpr char kLine[] = "freehold: active\n";
  os::write_to_standard_error(kLine, sizeof kLine - 1);
}

}  // namespace

// Returns whether this is a child of vfork: its filter is not its parent's, whose memory it uses; it only calls exec or
// ends. A child that it forks finds the page empty.
bool shares_memory_with_parent() noexcept {
  return !os::is_confined() && os::kernel::getpid() != g_process && g_own_page != nullptr && *g_own_page != 0;
}

bool start() noexcept {
  const base::KeepErrno keep;
  if (freehold_refuse_sanitizers != nullptr) freehold_refuse_sanitizers();
  const sync::Guard guard(g_start_lock);
  if (g_start.load(std::memory_order_relaxed) == Start::kReady) return true;
  os::find_libc();
  take_options();
  g_cpus = os::usable_cpus();
  const std::uint64_t limit = find_memory_limit();
  settle_huge_pages(limit);
  ArenaSettings settings = settings_for(g_options);
  const std::size_t budget = cache_budget(limit);
  bool ready = false;
  // An emulator or a container may refuse what the machine could hold: settle for less.
  for (; !ready && settings.capacity_bytes >= std::size_t{1} << 27; settings.capacity_bytes /= 4)
    ready = g_core.init(g_pages, settings, budget, g_cpus.cpus, &g_gate);
  if (!ready) return false;  // the next call tries again: memory may be there by then
  g_gate.init();
  g_purger_gate.init();
  g_process = os::kernel::getpid();
  g_own_page = static_cast<char*>(os::Pages::map_for_one_process(os::page_bytes()));
  if (g_own_page != nullptr) *g_own_page = 1;
  if (os::Libc::pthread_key_create(&g_key, thread_ends) != 0)
    g_key = kNoKey;  // before any thread can have a cache; allocates nothing
  g_base = g_core.arena().base();
  g_span_classes = g_core.arena().span_classes();
  if (!start_checks()) return false;
  watch_memory_limit();
  publish_live_figures();
  if (g_options.live) os::let_same_user_read();
  // If the system refuses, the program is not to blame: it runs without.
  (void)check::start_guards(g_pages, g_options.guard_rate);
  if (g_options.guard_rate != 0) g_core.arrays().keep_no_bursts();
  choose_slow_calls();
  g_start.store(Start::kReady, std::memory_order_release);
  return true;
}

static void register_fork_handlers() noexcept {
  static constinit std::atomic<bool> done{false};
  if (!done.exchange(true, std::memory_order_acq_rel))
    ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

// A constructor, since the unwinder may have to be loaded: during a malloc that could be the loader's own. Blocks that were
// allocated before have no stacks. And since the handlers of fork that the program registers have to run before ours, as
// they run before glibc's malloc takes its locks: one of them may wait for a lock that is held over malloc.
[[gnu::constructor]] static void when_loaded() noexcept {
  register_fork_handlers();
  if (!os::kThreadsTakeMalloc && start()) finish_start();
  if (!options_want_call_stacks()) return;
  if (g_start.load(std::memory_order_acquire) != Start::kReady && !start()) return;
  if (os::prepare_call_stacks() && is_checked()) check::keep_call_stacks(g_options.check.stacks);
  if (g_options.profile != 0 && !is_checked()) (void)start_profile(g_options.profile);
}

void finish_start() noexcept {
  static constinit std::atomic<bool> done{false};
  if (done.exchange(true, std::memory_order_acq_rel)) return;
  register_fork_handlers();
  if (g_options.stats_fd >= 0) std::atexit(write_stats_at_exit);
  if (os::Libc::getauxval(AT_SECURE) != 0) g_options.background_thread = BackgroundThread::kOff;
  if (g_options.background_thread != BackgroundThread::kOff) std::atexit(end_purger_at_exit);
  finish_start_of_checks();
  finish_start_of_profile();
  if (!is_checked()) std::atexit(look_at_caches_at_exit);
  if (g_options.verbose) announce();
}

}  // namespace freehold::alloc::engine

// The start takes other calls.
void freehold::alloc::confine() noexcept {
  if (engine::g_start.load(std::memory_order_acquire) != engine::Start::kReady) (void)engine::start();
  if (engine::shares_memory_with_parent() || os::g_confined.exchange(true, std::memory_order_relaxed)) return;
  engine::g_gate.fence_alone();
  engine::g_purger_gate.fence_alone();
  // Its caller's filter must not meet a thread that starts the purger at this moment, or the purger at its beginning.
  auto& calls = engine::g_purger.other_calls();
  calls.forbid_more();
  (void)engine::comes_true_soon([&calls] { return calls.are_over(); });
}
