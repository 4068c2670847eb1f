// The process's one engine: start, threads' coming and going, fork, and the functions of engine.hpp.
#include "freehold/alloc/engine.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "freehold/alloc/cpu_cache.hpp"
#include "freehold/alloc/fast_path.hpp"
#include "freehold/alloc/options.hpp"
#include "freehold/os/cpu.hpp"

namespace freehold::alloc {

constinit NativeCore g_core;
constinit std::uintptr_t g_base = 0;
constinit const std::atomic<std::uint8_t>* g_span_classes = nullptr;

namespace {

using Classes = NativeConfig::Classes;

constinit os::Pages g_pages;
constinit void* g_nothing[2] = {nullptr, nullptr};

// Empty and full at once: what a thread uses before it has a cache, and after.
constinit NativeCache g_no_cache{g_nothing};
constinit NativeCache g_cpu_mode{g_nothing};    // the same, of a thread that shares the caches of its CPU
constinit NativeCache g_late_cache{g_nothing};  // the same, of a thread that is ending: it gets no second cache

enum class Start : std::uint32_t { kNotYet, kReady };
constinit sync::Mutex<sync::NativeAtomics> g_start_lock;
constinit std::atomic<Start> g_start{Start::kNotYet};
constinit Options g_options;
constinit os::CpuCount g_cpus;
constinit CpuCaches<NativeCore, Classes> g_cpu_caches;
constinit pthread_key_t g_key = PTHREAD_KEYS_MAX;  // no key: setspecific refuses it, and threads get no caches

}  // namespace

constinit thread_local NativeCache* t_cache = &g_no_cache;

namespace {

// ---- threads ----------------------------------------------------------------------------------------------------------

// Runs after thread-local destructors, among the destructors of keys; waits for the last round, so that theirs still find
// the cache. What is freed later yet goes straight to the bitmap.
void thread_ends(void* cache_pointer) noexcept {
  auto* cache = static_cast<NativeCache*>(cache_pointer);
  // Not the last round: a sanitizer's runtime ends the thread in it, and instrumented code cannot run after that.
  if (++cache->exit_rounds < PTHREAD_DESTRUCTOR_ITERATIONS - 1) {
    ::pthread_setspecific(g_key, cache);
    return;
  }
  t_cache = &g_late_cache;
  g_core.detach(cache);
}

void before_fork() noexcept {
  g_start_lock.lock();
  g_core.before_fork();
}
void after_fork_in_parent() noexcept {
  g_core.after_fork_in_parent();
  g_start_lock.unlock();
}
void after_fork_in_child() noexcept {
  g_options.stats_fd = -1;  // it inherits the exit handler, but it is not the process that was asked for stats
  g_core.after_fork_in_child(t_cache);
  g_start_lock.unlock();
}

// ---- start ------------------------------------------------------------------------------------------------------------

[[nodiscard]] ArenaSettings settings_for(const Options& options) noexcept {
  ArenaSettings s;
  s.purge_delay_ms = options.purge_delay_ms;
  s.huge_pages = options.huge_pages;
  s.lanes = std::clamp(std::bit_ceil(4 * g_cpus.cpus), 8U, 64U);
  // Room for overcommit and for what fragmentation costs in addresses; nothing is reserved.
  constexpr std::size_t kMost = NativeCore::ArenaType::kMaxCapacityBytes;
  const std::size_t memory = std::min(os::physical_memory_bytes(), kMost);
  s.capacity_bytes = std::clamp(std::bit_ceil(memory) * 8, std::size_t{1} << 36, kMost);
  return s;
}

// Whether the descriptor still is what the parent passed: memory, sealed to its size. A program that closes what it did not
// open may have a file of its own under this number by now.
[[nodiscard]] bool is_stats_file(int fd) noexcept {
  constexpr int kSealed = F_SEAL_GROW | F_SEAL_SHRINK;
  const int seals = ::fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & kSealed) == kSealed;
}

void write_stats_at_exit() noexcept {
  if (!is_stats_file(g_options.stats_fd)) return;
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
    ready = g_core.init(g_pages, settings, budget, g_cpus.cpus);
  if (!ready) return false;                   // the next call tries again: memory may be there by then
  ::pthread_key_create(&g_key, thread_ends);  // before any thread can have a cache; allocates nothing
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
  if (g_options.verbose) announce();
}

// Whether a thread that begins now shares the caches of the CPUs: it was asked for, or there are very many threads.
[[nodiscard]] bool wants_cpu_mode() noexcept {
  if (g_options.cache == CacheMode::kThread || !os::rseq_available()) return false;
  return g_options.cache == CacheMode::kCpu || g_core.threads() >= NativeConfig::kManyThreads * g_cpus.cpus;
}

[[nodiscard]] bool cpu_caches_ready() noexcept {
  const sync::Guard guard(g_start_lock);
  return g_cpu_caches.ready() || g_cpu_caches.init(g_core, g_pages);
}

// The calling thread's own cache; null if it has none and gets none.
[[nodiscard, gnu::noinline]] NativeCache* own_cache_slow() noexcept {
  if (g_start.load(std::memory_order_acquire) != Start::kReady && !start()) return nullptr;
  if (wants_cpu_mode() && cpu_caches_ready()) {
    t_cache = &g_cpu_mode;
    finish_start();
    return nullptr;
  }
  NativeCache* const cache = g_core.attach();
  if (cache == nullptr) return nullptr;
  t_cache = cache;  // before setspecific, which may allocate
  finish_start();
  if (::pthread_setspecific(g_key, cache) == 0) return cache;
  t_cache = &g_no_cache;  // nobody would give the cache back at the thread's end: do without, and try again
  g_core.detach(cache);
  return nullptr;
}

[[nodiscard]] NativeCache* own_cache() noexcept {
  NativeCache* const cache = t_cache;
  if (cache == &g_no_cache) [[unlikely]]
    return own_cache_slow();
  return cache == &g_cpu_mode || cache == &g_late_cache ? nullptr : cache;
}

[[nodiscard]] unsigned size_class_of(const void* block) noexcept {
  const std::size_t span = (reinterpret_cast<std::uintptr_t>(block) - g_core.arena().base()) >> NativeConfig::kSpanShift;
  return span < span_count() ? g_core.arena().span_classes()[span].load(std::memory_order_relaxed) : 0;
}

class KeepErrno {
 public:
  KeepErrno() noexcept = default;
  ~KeepErrno() { errno = saved_; }

 private:
  int saved_ = errno;
};

[[nodiscard]] void* out_of_memory() noexcept {
  errno = ENOMEM;
  return nullptr;
}

[[nodiscard]] void* allocate_class(unsigned c) noexcept {
  NativeCache* const cache = own_cache();
  void* slot = nullptr;
  if (cache != nullptr) {
    slot = cache->pop(c);
    if (slot == nullptr) slot = g_core.refill(*cache, c);
  } else if (t_cache == &g_cpu_mode) {
    slot = g_cpu_caches.allocate(c);
  } else if (g_start.load(std::memory_order_acquire) == Start::kReady) {
    slot = g_core.allocate_uncached(c);
  }
  return slot != nullptr ? slot : out_of_memory();
}

[[nodiscard]] void* allocate_run(std::size_t bytes, std::size_t alignment, bool& zero) noexcept {
  zero = false;
  if (g_start.load(std::memory_order_acquire) != Start::kReady && !start()) return out_of_memory();
  void* block = g_core.allocate_large(bytes, alignment, zero);
  return block != nullptr ? block : out_of_memory();
}

}  // namespace

void* allocate_slow(std::size_t bytes) noexcept {
  if (bytes == 0) bytes = 1;
  if (bytes <= Classes::kMaxBytes) return allocate_class(Classes::class_of(bytes));
  bool zero;
  return allocate_run(bytes, 1, zero);
}

void deallocate_slow(void* block) noexcept {
  const KeepErrno keep;  // POSIX: free leaves errno alone, and giving memory back makes system calls that may fail
  const unsigned c = size_class_of(block);
  if (c == 0) return g_core.free_large(block);
  if (NativeCache* const cache = own_cache(); cache != nullptr)
    g_core.drain(*cache, c, block);
  else if (t_cache == &g_cpu_mode)
    g_cpu_caches.free(c, block);
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
    if (const unsigned c = Classes::aligned_class_of(alignment, bytes); c != 0) return allocate_class(c);
  bool zero;
  return allocate_run(std::max(bytes, Classes::kMaxBytes + 1), alignment, zero);
}

std::size_t usable_size(const void* block) noexcept {
  if (block == nullptr) return 0;
  const unsigned c = size_class_of(block);
  return c != 0 ? Classes::slot_bytes(c) : g_core.large_bytes(block);
}

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
      if (void* moved = g_core.resize_large(block, bytes); moved != nullptr) return moved;
  } else if (bytes <= old && bytes >= old / 2) {
    return block;  // a smaller slot would save less than half
  }
  void* fresh = allocate_inline(bytes);
  if (fresh == nullptr) return bytes <= old ? block : nullptr;
  std::memcpy(fresh, block, old < bytes ? old : bytes);
  deallocate_inline(block);
  return fresh;
}

std::size_t trim() noexcept {
  NativeCache* const cache = own_cache();
  if (g_start.load(std::memory_order_acquire) != Start::kReady) return 0;
  if (cache != nullptr) g_core.flush(*cache);
  if (t_cache == &g_cpu_mode) g_cpu_caches.flush();
  return g_core.trim();
}

void stats(Stats& out) noexcept {
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
