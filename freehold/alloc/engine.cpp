// The process's one engine: start, threads' coming and going, fork, and the functions of engine.hpp.
#include "freehold/alloc/engine.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "freehold/alloc/cpu_cache.hpp"
#include "freehold/alloc/fast_path.hpp"
#include "freehold/alloc/fork_work.hpp"
#include "freehold/alloc/options.hpp"
#include "freehold/alloc/purger_thread.hpp"
#include "freehold/os/cpu.hpp"
#include "freehold/os/memory_file.hpp"
#include "freehold/os/threads.hpp"
#include "freehold/sync/fork_gate.hpp"

// glibc's, for destructors of thread-local objects.
extern "C" [[gnu::weak]] int __cxa_thread_atexit_impl(void (*call)(void*), void* object, void* library) noexcept;

namespace freehold::alloc {

constinit NativeCore g_core;
constinit std::uintptr_t g_base = 0;
constinit std::atomic<std::size_t> g_span_count{0};
constinit const std::atomic<std::uint8_t>* g_span_classes = nullptr;

namespace {

using Classes = NativeConfig::Classes;

constinit os::Pages g_pages;
constinit void* g_nothing[2] = {nullptr, nullptr};

// Empty and full at once: what a thread uses before it has a cache, and after. Side by side, so that one compare tells them
// from a cache of a thread's own.
struct Modes {
  NativeCache no_cache{g_nothing};
  NativeCache cpu{g_nothing};        // of a thread that shares the caches of its CPU
  NativeCache late{g_nothing};       // of a thread that is ending: it gets no second cache
  NativeCache perturbed{g_nothing};  // while blocks are filled: every call has to come by
};
constinit Modes g_modes;
// What freed blocks are filled with, new ones with its complement; 0: nothing.
constinit std::atomic<std::uint8_t> g_perturb{0};

enum class Start : std::uint32_t { kNotYet, kReady };
constinit sync::Mutex<sync::NativeAtomics> g_start_lock;
constinit std::atomic<Start> g_start{Start::kNotYet};
constinit Options g_options;
constinit os::CpuCount g_cpus;
constinit CpuCaches<NativeCore, Classes> g_cpu_caches;
constinit sync::ForkGate<sync::NativeAtomics> g_gate;
constinit PurgerThread g_purger;
// The purger's own: a thread that forks amid a slow path of its own, from a handler of signals, keeps only the purger out.
constinit sync::ForkGate<sync::NativeAtomics> g_purger_gate;
constinit sync::ForkGate<sync::NativeAtomics>::Mark g_purger_mark{0};
constexpr pthread_key_t kNoKey = PTHREAD_KEYS_MAX;
constinit pthread_key_t g_key = kNoKey;

}  // namespace

constinit thread_local NativeCache* t_cache = &g_modes.no_cache;

namespace {

// ---- fork -------------------------------------------------------------------------------------------------------------

// The calling thread in the eyes of fork.
struct ForkState {
  std::uint16_t inside = 0;  // how often it is inside the gate: more than once if a signal's handler came amid a slow path
  std::uint16_t forks = 0;   // forks that it has under way, for which it closed the gate
  std::uint16_t all_forks = 0;
};
constinit thread_local ForkState t_fork;

// The calling thread's own cache; null if it has none now.
[[nodiscard]] NativeCache* present_cache() noexcept {
  NativeCache* const cache = t_cache;
  const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(cache) - reinterpret_cast<std::uintptr_t>(&g_modes);
  return offset < sizeof g_modes ? nullptr : cache;
}

// Inside the gate for a scope, unless another thread forks. What changes the engine needs one; what only reads does not.
class [[nodiscard]] Inside {
 public:
  // `cache`: the calling thread's own, or null.
  explicit Inside(NativeCache* cache) noexcept : own_(cache != nullptr ? &cache->inside : nullptr) {
    // First and last, as a handler of signals sees it: it may fork amid all this.
    ++t_fork.inside;
    sync::NativeAtomics::light_fence();
    if (own_ != nullptr && !g_gate.is_quiet(*own_)) {  // amid another of this thread, which goes on after us
      own_ = nullptr;
      entered_ = true;
    } else if (own_ != nullptr) {
      entered_ = g_gate.enter(*own_, t_fork.forks);
    } else {
      shared_ = &g_gate.shared_mark(sync::NativeAtomics::thread_number());
      entered_ = g_gate.enter_shared(*shared_, t_fork.forks);
    }
  }
  ~Inside() {
    if (entered_) {
      if (own_ != nullptr) g_gate.leave(*own_);
      if (shared_ != nullptr) g_gate.leave_shared(*shared_);
      if (g_core.arena().something_due()) g_purger.wake();
    }
    sync::NativeAtomics::light_fence();
    --t_fork.inside;
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  explicit operator bool() const noexcept { return entered_; }

 private:
  using Mark = sync::ForkGate<sync::NativeAtomics>::Mark;
  Mark* own_;
  Mark* shared_ = nullptr;
  bool entered_;
};

// For what holds locks of the engine and changes nothing: a handler of signals that forks amid it must not wait for them.
class [[nodiscard]] Reading {
 public:
  Reading() noexcept {
    ++t_fork.inside;
    sync::NativeAtomics::light_fence();
  }
  ~Reading() {
    sync::NativeAtomics::light_fence();
    --t_fork.inside;
  }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
};

// A thread that another's fork keeps out waits this long before it looks for another way: most forks are over by then, but
// this one may be waiting for a lock that the thread holds.
constexpr std::uint64_t kForkWaitNs = 1'000'000;
constexpr unsigned kForkTurns = 1'000;  // times that, before a thread that forks no longer waits for another's fork
constexpr unsigned kForkTries = 1'000;  // and before malloc fails because the system refuses a mapping meanwhile

void wait_for_forks() noexcept {
  const std::uint32_t forks = g_gate.forks();
  if (forks != t_fork.forks) sync::NativeAtomics::wait_shared(g_gate.word(), forks, kForkWaitNs);
}

// For look_for_dead_threads().
constexpr std::uint64_t kFirstLook = 64;
constinit std::atomic<std::uint64_t> g_look_at{kFirstLook};
constinit pid_t g_process = 0;  // the one whose threads are looked for; another may share our memory (vfork, clone)

struct Freed {
  Freed* next;
};
constinit DeferredList<sync::NativeAtomics, Freed, &Freed::next> g_deferred_frees;
constinit DeferredList<sync::NativeAtomics, NativeCache, &NativeCache::next_ended> g_ended;
constinit ForkBlocks<sync::NativeAtomics, os::Pages> g_fork_blocks;

void give_back(NativeCache* cache) noexcept;

// Does what was put off while threads forked; what yet another fork keeps from being done is put off again.
void run_deferred() noexcept {
  for (NativeCache *cache = g_ended.take_all(), *next = nullptr; cache != nullptr; cache = next) {
    next = cache->next_ended;
    give_back(cache);
  }
  for (Freed *block = g_deferred_frees.take_all(), *next = nullptr; block != nullptr; block = next) {
    next = block->next;
    deallocate_slow(block);
  }
}

void defer_free(Freed* block) noexcept {
  g_deferred_frees.push(block);
  if (g_gate.forks() == 0) run_deferred();  // the fork ended meanwhile: nobody else may look
}

// A step of the purger is over, and it begins no other; it waits for nobody meanwhile.
void keep_purger_out() noexcept {
  ++t_fork.all_forks;
  g_purger_gate.close();
  while (!g_purger_gate.is_quiet(g_purger_mark)) ::sched_yield();
}

// The engine is left by all other threads, and they stay out; no lock is held.
void before_fork() noexcept {
  keep_purger_out();
  if (t_fork.inside != 0) return;  // a signal's handler forks, amid a slow path of this thread: it continues in both
  ++t_fork.inside;
  // One after the other, as far as they do not wait for each other.
  for (unsigned turn = 0; turn < kForkTurns && g_gate.forks() != t_fork.forks; ++turn) wait_for_forks();
  run_deferred();  // where forks follow each other closely, nobody else may get to it
  ++t_fork.forks;
  g_gate.close();
  NativeCache* const mine = present_cache();
  for (unsigned looks = 0; !g_gate.shared_marks_are_quiet() || !g_core.others_are_outside(mine); ++looks) {
    constexpr timespec kNap{0, 50'000};  // a thread of a lower priority may have to run first
    looks < 20 ? static_cast<void>(::sched_yield()) : static_cast<void>(::nanosleep(&kNap, nullptr));
  }
  --t_fork.inside;
}
void after_fork_in_parent() noexcept {
  --t_fork.all_forks;
  (void)g_purger_gate.open();
  if (t_fork.inside != 0) return;
  --t_fork.forks;
  if (g_gate.open()) run_deferred();
}
void after_fork_in_child() noexcept {
  g_options.stats_fd = -1;  // it inherits the exit handler, but it is not the process that was asked for stats
  g_purger.forget();
  g_purger_gate.reset(--t_fork.all_forks);
  g_core.arena().budget().set_purged_in_time(false);
  g_process = ::getpid();
  if (t_fork.inside != 0) return g_core.after_fork_amid_an_entry(present_cache());
  --t_fork.forks;
  g_start_lock.reset();
  g_fork_blocks.reset();
  g_ended.forget();  // adopted with all others
  if (NativeCache* const mine = present_cache(); mine != nullptr) mine->thread.store(g_process);
  g_look_at.store(kFirstLook, std::memory_order_relaxed);  // relaxed: there is no other thread
  g_core.after_fork_in_child(present_cache());
  g_gate.reset(t_fork.forks);
  run_deferred();
}

// ---- threads ----------------------------------------------------------------------------------------------------------

// Ends a cache that no thread uses any more.
void give_back(NativeCache* cache) noexcept {
  if (const Inside inside(nullptr); inside) return g_core.detach(cache);
  g_ended.push(cache);
  if (g_gate.forks() == 0) run_deferred();
}

// The last thread, or the last but one, ends: the program may want to be alone. Regret that only the purger made cheap goes
// with it, and what is beyond the budget then.
void end_purger_if_alone() noexcept {
  const bool alone =
      g_core.threads() == 0 || (g_core.threads() == 1 && g_options.background_thread != BackgroundThread::kOn);
  if (!alone || !g_purger.end()) return;
  g_core.arena().budget().set_purged_in_time(false);
  for (bool more = true; more;) {
    const Inside inside(nullptr);
    more = inside && g_core.relieve();
  }
}

// Runs after thread-local destructors, among the destructors of keys; waits for the last round, so that theirs still find
// the cache. What is freed later yet goes straight to the bitmap.
void thread_ends(void* cache_pointer) noexcept {
  auto* cache = static_cast<NativeCache*>(cache_pointer);
  if (cache != t_cache) return;  // it was given back before
  // Not the last round: a sanitizer's runtime ends the thread in it, and instrumented code cannot run after that.
  if (++cache->exit_rounds < PTHREAD_DESTRUCTOR_ITERATIONS - 1) {
    ::pthread_setspecific(g_key, cache);
    return;
  }
  t_cache = &g_modes.late;
  give_back(cache);
  end_purger_if_alone();
}

// ---- the thread that gives memory back --------------------------------------------------------------------------------

[[nodiscard]] Due purge_step() noexcept {
  if (!g_purger_gate.enter(g_purger_mark, 0)) return Due::kLater;
  Due due = Due::kLater;
  if (const Inside inside(nullptr); inside) {
    g_core.arena().budget().set_purged_in_time(true);
    due = g_core.purge_idle();
  }
  g_purger_gate.leave(g_purger_mark);
  return due;
}

// Called where memory is allocated, outside the gate: a program with threads that holds enough to give some back gets one.
void consider_purger() noexcept {
  constexpr std::int64_t kEnoughBytes = std::int64_t{8} << 20;
  if (g_purger.exists() || g_options.background_thread == BackgroundThread::kOff) return;
  if (g_core.threads() < (g_options.background_thread == BackgroundThread::kOn ? 1 : 2)) return;
  if (g_core.arena().budget().footprint() + g_core.most_unreported_bytes() < kEnoughBytes) return;
  if (t_fork.inside != 0 || g_gate.forks() != 0 || ::getpid() != g_process) return;
  g_purger.start(purge_step, std::max<std::uint64_t>(g_core.arena().purge_delay_ms() / 2, 10));
}

void end_purger_at_exit() noexcept {
  if (::getpid() == g_process) (void)g_purger.end();
}

// Runs among the destructors of thread-local objects, where the program has taken all keys: what theirs free later, and
// those of keys, goes straight to the bitmap.
void thread_ends_without_key(void* cache) noexcept {
  if (cache != t_cache) return;
  t_cache = &g_modes.late;
  give_back(static_cast<NativeCache*>(cache));
  end_purger_if_alone();
}

// Asks for a call when the calling thread ends. False: nobody would give the cache back.
[[nodiscard]] bool register_thread_exit(NativeCache* cache) noexcept {
  if (g_key != kNoKey) return ::pthread_setspecific(g_key, cache) == 0;
  if (&__cxa_thread_atexit_impl == nullptr) return false;
  // glibc's list of destructors ends the process where it gets no memory: see to it that there is some.
  constexpr std::size_t kEntryBytes = 64;
  void* const probe = allocate(kEntryBytes);
  if (probe == nullptr) return false;
  deallocate(probe);
  return ::__cxa_thread_atexit_impl(thread_ends_without_key, cache, &g_key) == 0;
}

// A thread whose first malloc comes in the last round of its keys' destructors ends unheard. Its cache is found when there
// are twice as many caches as after the last look: one call to the system for each cache, and at most two for each thread.

void look_for_dead_threads() noexcept {
  const std::uint64_t threads = g_core.threads();
  std::uint64_t look_at = g_look_at.load(std::memory_order_relaxed);  // relaxed: who changes it, looks
  if (threads < look_at || ::getpid() != g_process) return;
  if (!g_look_at.compare_exchange_strong(look_at, UINT64_MAX, std::memory_order_relaxed)) return;
  {
    const int saved = errno;
    const auto is_dead = [](const NativeCache& cache) {
      const std::int32_t thread = cache.thread.load(std::memory_order_relaxed);  // relaxed: 0, or the id
      return thread != 0 && os::thread_has_ended(g_process, thread);
    };
    if (const Inside inside(nullptr); inside) g_core.detach_all(is_dead);
    errno = saved;
  }
  g_look_at.store(2 * g_core.threads() + kFirstLook, std::memory_order_relaxed);
}

// ---- start ------------------------------------------------------------------------------------------------------------

[[nodiscard]] ArenaSettings settings_for(const Options& options) noexcept {
  ArenaSettings s;
  s.purge_delay_ms = options.purge_delay_ms;
  s.huge_pages = options.huge_pages;
  s.prefault = options.prefault;
  s.limit_bytes = options.limit_bytes;
  s.stripes = std::clamp(std::bit_ceil(4 * g_cpus.cpus), 8U, 64U);
  // Room for overcommit and for what fragmentation costs in addresses; nothing is reserved.
  constexpr std::size_t kMost = NativeCore::ArenaType::kMaxCapacityBytes;
  const std::size_t memory = std::min(os::physical_memory_bytes(), kMost);
  s.capacity_bytes = std::clamp(std::bit_ceil(memory) * 8, std::size_t{1} << 36, kMost);
  return s;
}

void write_stats_at_exit() noexcept {
  // A program that closes descriptors that it did not open may have a file of its own under this number by now.
  if (!os::is_sealed_memory_file(g_options.stats_fd)) return;
  static Stats stats;
  alloc::stats(stats);
  const char* from = reinterpret_cast<const char*>(&stats);
  [[maybe_unused]] const auto written = ::pwrite(g_options.stats_fd, from, sizeof stats, 0);
}

void announce() noexcept {
  static constexpr char kLine[] = "freehold: active\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kLine, sizeof kLine - 1);
}

[[nodiscard]] bool start() noexcept {
  const sync::Guard guard(g_start_lock);
  if (g_start.load(std::memory_order_relaxed) == Start::kReady) return true;
  g_options = read_options();
  g_cpus = os::usable_cpus();
  ArenaSettings settings = settings_for(g_options);
  const std::size_t budget = g_options.cache_bytes != 0 ? g_options.cache_bytes : NativeConfig::kBudgetBytes;
  bool ready = false;
  // An emulator or a container may refuse what the machine could hold: settle for less.
  for (; !ready && settings.capacity_bytes >= std::size_t{1} << 27; settings.capacity_bytes /= 4)
    ready = g_core.init(g_pages, settings, budget, g_cpus.cpus, &g_gate);
  if (!ready) return false;  // the next call tries again: memory may be there by then
  g_gate.init();
  g_purger_gate.init();
  g_process = ::getpid();
  if (::pthread_key_create(&g_key, thread_ends) != 0)
    g_key = kNoKey;  // before any thread can have a cache; allocates nothing
  g_base = g_core.arena().base();
  g_span_classes = g_core.arena().span_classes();
  g_start.store(Start::kReady, std::memory_order_release);
  return true;
}

// What needs the rest of the process: after the engine works, since these may allocate.
void finish_start() noexcept {
  static constinit std::atomic<bool> done{false};
  if (done.exchange(true, std::memory_order_acq_rel)) return;
  ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  if (g_options.stats_fd >= 0) std::atexit(write_stats_at_exit);
  if (::getauxval(AT_SECURE) != 0) g_options.background_thread = BackgroundThread::kOff;
  if (g_options.background_thread != BackgroundThread::kOff) std::atexit(end_purger_at_exit);
  if (g_options.verbose) announce();
}

// Whether a thread that begins now shares the caches of the CPUs: it was asked for, or there are very many threads.
[[nodiscard]] bool wants_cpu_mode() noexcept {
  if (g_options.cache == CacheMode::kThread || !os::rseq_available()) return false;
  return g_options.cache == CacheMode::kCpu || g_core.threads() >= NativeConfig::kManyThreads * g_cpus.cpus;
}

[[nodiscard]] bool cpu_caches_ready() noexcept {
  const Inside inside(nullptr);
  if (!inside) return false;
  const sync::Guard guard(g_start_lock);
  if (g_cpu_caches.ready()) return true;
  if (!g_cpu_caches.init(g_core, g_pages)) return false;
  g_core.expect_threads(g_cpus.cpus);
  return true;
}

[[nodiscard]] NativeCache* attach() noexcept {
  const Inside inside(nullptr);
  if (!inside) return nullptr;
  NativeCache* const cache = g_core.attach();
  if (cache != nullptr && ::getpid() == g_process)
    cache->thread.store(os::thread_id(), std::memory_order_relaxed);  // relaxed: an id
  return cache;
}

// The calling thread's own cache; null if it has none and gets none.
[[nodiscard, gnu::noinline]] NativeCache* own_cache_slow() noexcept {
  if (g_start.load(std::memory_order_acquire) != Start::kReady && !start()) return nullptr;
  if (wants_cpu_mode() && cpu_caches_ready()) {
    t_cache = &g_modes.cpu;
    finish_start();
    return nullptr;
  }
  if (g_perturb.load(std::memory_order_relaxed) != 0) {
    t_cache = &g_modes.perturbed;
    finish_start();
    return nullptr;
  }
  look_for_dead_threads();
  NativeCache* const cache = attach();
  if (cache == nullptr) return nullptr;
  t_cache = cache;  // before register_thread_exit, which may allocate
  finish_start();
  if (register_thread_exit(cache)) return cache;
  // Do without. Where there is a key it was memory that failed, and may be there next time.
  t_cache = g_key != kNoKey ? &g_modes.no_cache : &g_modes.late;
  give_back(cache);
  return nullptr;
}

// The modes of a thread meet those of the process: called by slow paths, so that fast ones need not ask.
void follow_perturbation_mode() noexcept {
  const bool fills = g_perturb.load(std::memory_order_relaxed) != 0;  // relaxed: a mode, it publishes nothing
  if (fills == (t_cache == &g_modes.perturbed)) [[likely]]
    return;
  if (!fills) {
    t_cache = &g_modes.no_cache;
  } else if (NativeCache* const cache = present_cache(); cache != nullptr) {
    t_cache = &g_modes.perturbed;
    give_back(cache);
  } else if (t_cache == &g_modes.cpu) {
    t_cache = &g_modes.perturbed;
  }
}

[[nodiscard]] NativeCache* own_cache() noexcept {
  follow_perturbation_mode();
  return t_cache == &g_modes.no_cache ? own_cache_slow() : present_cache();
}

// A new block of the program's. Relaxed: a mode, it publishes nothing.
[[nodiscard]] void* filled(void* block, std::size_t bytes) noexcept {
  const std::uint8_t byte = g_perturb.load(std::memory_order_relaxed);
  return byte == 0 || block == nullptr ? block : std::memset(block, static_cast<std::uint8_t>(~byte), bytes);
}

[[nodiscard]] SizeClass size_class_of(const void* block) noexcept {
  const std::size_t span = (reinterpret_cast<std::uintptr_t>(block) - g_core.arena().base()) >> NativeConfig::kSpanShift;
  return SizeClass{span < span_count() ? g_core.arena().span_classes()[span].load(std::memory_order_relaxed)
                                       : std::uint32_t{0}};
}

class KeepErrno {
 public:
  KeepErrno() noexcept = default;
  ~KeepErrno() { errno = saved_; }

 private:
  int saved_ = errno;
};

// Once: a program that meets its limit does so again and again.
[[gnu::cold]] void report_limit() noexcept {
  static constinit std::atomic<bool> reported{false};
  static constexpr char kLine[] = "freehold: the memory limit is reached (FREEHOLD_LIMIT_BYTES or freehold_set_limit)\n";
  if (reported.exchange(true, std::memory_order_relaxed)) return;
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kLine, sizeof kLine - 1);
}

[[nodiscard]] void* out_of_memory() noexcept {
  if (g_core.limit_was_met()) report_limit();
  errno = ENOMEM;
  return nullptr;
}

// Runs `take` inside the gate, or maps a block if another thread's fork takes long.
template <class Take>
[[nodiscard]] void* allocate_inside(NativeCache* cache, std::size_t bytes, std::size_t alignment, Take take) noexcept {
  for (unsigned tries = 0; tries < kForkTries; ++tries) {
    if (const Inside inside(cache); inside) {
      void* const block = take();
      return block != nullptr ? block : out_of_memory();
    }
    const KeepErrno keep;
    wait_for_forks();
    if (g_gate.forks() == t_fork.forks) continue;
    if (void* const block = g_fork_blocks.allocate(g_pages, bytes, alignment); block != nullptr) return block;
  }
  return out_of_memory();
}

[[nodiscard, gnu::noinline]] void* allocate_class_slow(SizeClass c, std::size_t bytes, std::size_t alignment) noexcept {
  NativeCache* const cache = own_cache();
  if (cache != nullptr) {
    if (void* const slot = cache->pop(c); slot != nullptr) return slot;
    consider_purger();
    return allocate_inside(cache, bytes, alignment, [=] { return g_core.refill(*cache, c); });
  }
  if (t_cache == &g_modes.cpu) {
    if (void* const slot = g_cpu_caches.pop(c); slot != nullptr) return slot;
    return allocate_inside(nullptr, bytes, alignment, [=] { return g_cpu_caches.refill(c); });
  }
  if (g_start.load(std::memory_order_acquire) != Start::kReady) return out_of_memory();
  return allocate_inside(nullptr, bytes, alignment, [=] { return g_core.allocate_uncached(c); });
}

// Blocks above the fast path's table come here, too, and most find a slot: look before anything is saved on the stack. The
// caches of threads without one are empty, and so are those of threads whose blocks are to be filled.
[[nodiscard, gnu::always_inline]] inline void* allocate_class(SizeClass c, std::size_t bytes,
                                                              std::size_t alignment) noexcept {
  void* const slot = t_cache->pop(c);
  if (slot != nullptr) [[likely]]
    return slot;
  return filled(allocate_class_slow(c, bytes, alignment), bytes);
}

[[nodiscard]] void* allocate_run(std::size_t bytes, std::size_t alignment, bool& zero) noexcept {
  zero = false;
  NativeCache* const cache = own_cache();  // for its mark, which no other thread writes; and it starts the engine
  if (g_start.load(std::memory_order_acquire) != Start::kReady) return out_of_memory();
  if (cache != nullptr) consider_purger();
  return allocate_inside(cache, bytes, alignment,
                         [=, &zero] { return g_core.allocate_large(cache, bytes, alignment, zero); });
}

}  // namespace

void* allocate_slow(std::size_t bytes) noexcept {
  if (bytes - 1 < Classes::kMaxBytes) [[likely]]
    return allocate_class(Classes::class_of(bytes), bytes, 1);
  if (bytes == 0) return allocate_class(SizeClass{1}, 1, 1);
  bool zero;
  return filled(allocate_run(bytes, 1, zero), bytes);
}

void deallocate_slow(void* block) noexcept {
  if (block == nullptr) return;
  const KeepErrno keep;  // POSIX: free leaves errno alone, and giving memory back makes system calls that may fail
  if (const std::uint8_t byte = g_perturb.load(std::memory_order_relaxed); byte != 0)  // relaxed: as in filled()
    std::memset(block, byte, usable_size(block));
  const SizeClass c = size_class_of(block);
  NativeCache* const cache = c.is_slot() ? own_cache() : present_cache();
  const bool shares = t_cache == &g_modes.cpu;
  if (c.is_slot() && shares && g_cpu_caches.push(c, block)) return;
  if (!c.is_slot() && g_fork_blocks.free(g_pages, block)) return;
  const Inside inside(cache);
  if (!inside) return defer_free(static_cast<Freed*>(block));
  if (!c.is_slot())
    g_core.free_large(cache, block);
  else if (cache != nullptr)
    g_core.drain(*cache, c, block);
  else if (shares)
    g_cpu_caches.drain(c, block);
  else
    g_core.free_uncached(c, block);
}

// ---- engine.hpp -------------------------------------------------------------------------------------------------------

void* allocate(std::size_t bytes) noexcept { return allocate_inline(bytes); }

void deallocate(void* block) noexcept { deallocate_inline(block); }

void* allocate_zeroed(std::size_t bytes) noexcept {
  if (bytes <= Classes::kMaxBytes) {
    void* slot = allocate_inline(bytes);
    return slot == nullptr ? nullptr : std::memset(slot, 0, bytes);
  }
  bool zero;
  void* block = allocate_run(bytes, 1, zero);
  return block == nullptr || zero ? block : std::memset(block, 0, bytes);
}

void* allocate_aligned(std::size_t alignment, std::size_t bytes) noexcept {
  if (bytes == 0) bytes = 1;
  if (alignment <= 16) return allocate_inline(bytes);
  if (alignment <= Classes::kMaxBytes && bytes <= Classes::kMaxBytes)
    if (const SizeClass c = Classes::aligned_class_of(alignment, bytes); c.is_slot())
      return allocate_class(c, bytes, alignment);
  bool zero;
  return filled(allocate_run(std::max(bytes, Classes::kMaxBytes + 1), alignment, zero), bytes);
}

std::size_t usable_size(const void* block) noexcept {
  if (block == nullptr) return 0;
  const SizeClass c = size_class_of(block);
  if (c.is_slot()) return Classes::slot_bytes(c);
  const std::size_t bytes = g_core.large_bytes(block);
  return bytes != 0 ? bytes : g_fork_blocks.bytes_of(block);
}

namespace {

[[nodiscard]] void* resize(void* block, std::size_t bytes) noexcept {
  NativeCache* const cache = present_cache();
  const Inside inside(cache);
  return inside ? g_core.resize_large(cache, block, bytes) : nullptr;
}

}  // namespace

void* reallocate(void* block, std::size_t bytes) noexcept {
  if (block == nullptr) return allocate_inline(bytes);
  if (bytes == 0) bytes = 1;
  const std::size_t old = usable_size(block);
  if (old == 0) {
    g_core.report(block);
    return out_of_memory();
  }
  if (old > Classes::kMaxBytes) {
    if (bytes > Classes::kMaxBytes)
      if (void* moved = resize(block, bytes); moved != nullptr) return moved;
  } else if (bytes <= old && bytes >= old / 2) {
    return block;  // a smaller slot would save less than half
  }
  void* fresh = allocate_inline(bytes);
  if (fresh == nullptr) return bytes <= old ? block : nullptr;
  std::memcpy(fresh, block, old < bytes ? old : bytes);
  deallocate_inline(block);
  return fresh;
}

void set_perturbation(std::uint8_t byte) noexcept {
  g_perturb.store(byte, std::memory_order_relaxed);
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
      more = g_core.trim_step(bytes);
    else
      ++refused;  // another fork
  }
  return bytes;
}

}  // namespace

std::size_t trim() noexcept {
  NativeCache* const cache = own_cache();
  if (g_start.load(std::memory_order_acquire) != Start::kReady) return 0;
  wait_for_forks();
  {
    const Inside inside(cache);
    if (!inside) return 0;
    if (cache != nullptr) g_core.flush(*cache);
    if (t_cache == &g_modes.cpu) g_cpu_caches.flush();
    g_core.reclaim_all_runs(cache);
  }
  return trim_in_steps(cache);
}

std::size_t idle() noexcept {
  if (g_start.load(std::memory_order_acquire) != Start::kReady) return 0;
  NativeCache* const cache = present_cache();
  {
    const Inside inside(cache);
    if (!inside) return 0;
    if (cache != nullptr) g_core.flush(*cache);
  }
  return g_core.arena().something_due() || g_core.keeps_mappings() ? trim_in_steps(cache) : 0;
}

std::size_t set_limit(std::size_t bytes) noexcept {
  if (g_start.load(std::memory_order_acquire) != Start::kReady && !start()) return 0;
  return g_core.set_limit(bytes);
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
