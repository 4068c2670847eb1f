#include "freehold/doctor/recorder.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>

#include "freehold/base/bits.hpp"
#include "freehold/doctor/trace_format.hpp"
#include "freehold/sync/lock.hpp"

namespace freehold::doctor::probe {

constinit thread_local Thread t_thread{};
constinit std::atomic<std::uint64_t> g_filter[(std::size_t{1} << kFilterBits) / 64]{};
constinit std::atomic<std::uint64_t> g_epoch{1};

namespace {

constexpr std::int64_t kFirstInterval = 1;  // what a thread allocates first often lives for long
constexpr std::int64_t kWarmCalls = 16;     // between reading the slow clocks and a sample
constexpr std::int64_t kMostInterval = std::int64_t{1} << 24;
constexpr std::uint64_t kAimNs = 1'000'000;                       // between two samples of a kind and thread
constexpr std::uint64_t kMostWaitTicks = std::uint64_t{1} << 32;  // about a second
constexpr std::uint64_t kEpochNs = 20'000'000;                    // for which the same pages are watched
constexpr std::uint32_t kPageTokens = 64;  // events of a thread in watched pages, for each epoch: about 1% of its time
constexpr std::uint64_t kMostBytes = std::uint64_t{256} << 20;

alignas(64) constinit std::atomic<std::uint64_t> g_table[std::size_t{1} << kTableBits]{};

// Where the process's records go.
struct File {
  sync::Mutex<sync::NativeAtomics> lock;
  std::atomic<bool> is_on{false};
  std::atomic<std::uint32_t> generation{1};
  int fd = -1;
  FileHeader* header = nullptr;
  char maps_path[4096] = {};
  std::uint64_t most_bytes = kMostBytes;
  double ticks_per_ns = 1;
  std::atomic<std::uint64_t> next_epoch_ticks{0};
  std::atomic<std::uint64_t> wait_interval_ticks[2] = {};  // of locks, of idleness: waiting that one sample stands for
  std::atomic<std::uint64_t> last_wait_ticks[2] = {};      // when one was recorded
  pthread_key_t key{};
  std::uintptr_t own_begin = 0, own_end = 0;  // the probe's code, which is in no stack
};
constinit File g_file;

class KeepErrno {
 public:
  KeepErrno() noexcept : saved_(errno) {}
  ~KeepErrno() { errno = saved_; }
  KeepErrno(const KeepErrno&) = delete;
  KeepErrno& operator=(const KeepErrno&) = delete;

 private:
  int saved_;
};

[[nodiscard]] std::uint64_t monotonic_ns(clockid_t clock) noexcept {
  timespec t{};
  ::clock_gettime(clock, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec);
}
[[nodiscard]] ClockReading read_clocks() noexcept { return {ticks(), monotonic_ns(CLOCK_MONOTONIC)}; }

// How often the thread went to sleep.
[[nodiscard]] std::uint64_t sleeps() noexcept {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return static_cast<std::uint64_t>(usage.ru_nvcsw);
}

[[nodiscard]] std::uint64_t draw(Thread& thread) noexcept {
  thread.random ^= thread.random << 13;  // Marsaglia's xorshift64
  thread.random ^= thread.random >> 7;
  thread.random ^= thread.random << 17;
  return thread.random;
}

// ---- the file ----

[[nodiscard]] bool make_room(std::uint64_t offset) noexcept {
  // Not ftruncate: a hole that cannot be filled later, on a full disk, would end the program by a signal.
  return offset + kExtentBytes <= g_file.most_bytes &&
         posix_fallocate(g_file.fd, static_cast<off_t>(offset), static_cast<off_t>(kExtentBytes)) == 0;
}
[[nodiscard]] std::byte* map(std::uint64_t offset) noexcept {
  void* const at = ::mmap(nullptr, kExtentBytes, PROT_READ | PROT_WRITE, MAP_SHARED, g_file.fd, static_cast<off_t>(offset));
  return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
}

// The memory map beside the records, for names: written anew when there may be new libraries in it. Names are cut where the
// file cannot be written; nothing else is.
void write_maps() noexcept {
  const int from = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  const int to = ::open(g_file.maps_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  char buffer[4096];
  ssize_t bytes = 0;
  while (from >= 0 && to >= 0 && (bytes = ::read(from, buffer, sizeof buffer)) > 0 &&
         ::write(to, buffer, static_cast<std::size_t>(bytes)) == bytes) {
  }
  if (from >= 0) ::close(from);
  if (to >= 0) ::close(to);
}

// Pre: the lock is held, or there is only one thread.
[[nodiscard]] bool open_file(std::uint32_t parent) noexcept {
  const char* const directory = std::getenv("FREEHOLD_PROBE_DIRECTORY");
  if (directory == nullptr) return false;
  char path[sizeof g_file.maps_path];
  for (unsigned n = 0; n < 1000; ++n) {  // a process that executes another program keeps its number
    const int length = std::snprintf(path, sizeof path, "%s/%d-%u.trace", directory, static_cast<int>(getpid()), n);
    if (length < 0 || static_cast<std::size_t>(length) >= sizeof path) return false;
    g_file.fd = ::open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (g_file.fd >= 0 || errno != EEXIST) break;
  }
  if (g_file.fd < 0) return false;
  if (!make_room(0) || (g_file.header = reinterpret_cast<FileHeader*>(map(0))) == nullptr) {
    ::close(g_file.fd);
    return false;
  }
  std::memcpy(g_file.maps_path, path, sizeof path);
  std::strcpy(std::strrchr(g_file.maps_path, '.'), ".maps");  // shorter than ".trace"
  write_maps();
  const ClockReading now = read_clocks();
  *g_file.header = {.magic = kTraceMagic,
                    .pid = static_cast<std::uint32_t>(getpid()),
                    .parent = parent,
                    .begin = now,
                    .last = now,
                    .cpu_ns = 0,
                    .extents = 1,
                    .dropped = 0,
                    .empty_call_ticks = 0,
                    .fast_path_picoseconds = 0};
  return true;
}

// A record of `bytes`, or null: there is no room any more.
[[nodiscard]] std::byte* room_for(Thread& thread, std::size_t bytes) noexcept;

void add_totals(Thread& thread, bool ended) noexcept {
  std::byte* const at = room_for(thread, sizeof(RecordHeader) + sizeof(ThreadTotals));
  if (at == nullptr) return;
  const auto seen = [](const Countdown& calls) {
    return calls.calls + static_cast<std::uint64_t>(calls.gap - calls.left - calls.behind);
  };
  ::new (at) RecordHeader{RecordKind::kThread, 0, sizeof(RecordHeader) + sizeof(ThreadTotals)};
  ::new (at + sizeof(RecordHeader)) ThreadTotals{.ticks = ticks(),
                                                 .allocations = seen(thread.allocations),
                                                 .frees = seen(thread.frees),
                                                 .cpu_ns = monotonic_ns(CLOCK_THREAD_CPUTIME_ID),
                                                 .probe_ticks = thread.probe_ticks,
                                                 .ended = ended ? 1U : 0U};
  g_file.header->last = read_clocks();
  g_file.header->cpu_ns = monotonic_ns(CLOCK_PROCESS_CPUTIME_ID);
}

[[nodiscard]] bool new_extent(Thread& thread) noexcept {
  const sync::Guard guard(g_file.lock);
  const std::uint64_t offset = g_file.header->extents * kExtentBytes;
  if (thread.extent != nullptr) ::munmap(thread.extent, kExtentBytes);
  thread.extent = make_room(offset) ? map(offset) : nullptr;
  if (thread.extent == nullptr) {
    thread.cursor = thread.end = nullptr;
    return false;
  }
  ++g_file.header->extents;
  write_maps();
  thread.generation = g_file.generation.load(std::memory_order_relaxed);  // relaxed: changes in a child of fork only
  thread.cursor = thread.extent + sizeof(ExtentHeader);
  thread.end = thread.extent + kExtentBytes;
  ::new (thread.extent) ExtentHeader{.thread = thread.id, .used = 0};
  return true;
}

std::byte* room_for(Thread& thread, std::size_t bytes) noexcept {
  const bool is_of_parent = thread.generation != g_file.generation.load(std::memory_order_relaxed);
  if (is_of_parent && thread.extent != nullptr) {
    ::munmap(thread.extent, kExtentBytes);
    thread.extent = thread.cursor = thread.end = nullptr;
  }
  if (static_cast<std::size_t>(thread.end - thread.cursor) < bytes && !new_extent(thread)) {
    std::atomic_ref(g_file.header->dropped).fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  std::byte* const at = thread.cursor;
  thread.cursor += bytes;
  reinterpret_cast<ExtentHeader*>(thread.extent)->used =
      static_cast<std::uint32_t>(thread.cursor - thread.extent - static_cast<std::ptrdiff_t>(sizeof(ExtentHeader)));
  return at;
}

// ---- records ----

// Code made at run time has no unwind information, and a stack ended there. CPython's trampolines (PYTHONPERFSUPPORT=1) have
// one of two frames, which are told by what is executed after the return: add $8,%rsp; ret or pop %rbp; ret. Either way the
// return address lies 8 bytes up. Reads by system calls, as the address may be nothing at all. False: it is no such frame.
[[nodiscard]] bool step_over_trampoline(unw_cursor_t& cursor, unw_word_t address) noexcept {
  constexpr unsigned char kAdd[] = {0x48, 0x83, 0xc4, 0x08, 0xc3}, kPop[] = {0x5d, 0xc3};
  unw_word_t stack = 0;
  if (unw_get_reg(&cursor, UNW_REG_SP, &stack) != 0) return false;
  unsigned char code[sizeof kAdd] = {};
  unw_word_t frame[2] = {};
  iovec to[] = {{code, sizeof code}, {frame, sizeof frame}};
  iovec from[] = {{reinterpret_cast<void*>(address), sizeof code}, {reinterpret_cast<void*>(stack), sizeof frame}};
  const ssize_t whole = sizeof code + sizeof frame;
  if (::process_vm_readv(::getpid(), to, 2, from, 2, 0) != whole || frame[1] == 0) return false;
  const bool has_pop = std::memcmp(code, kPop, sizeof kPop) == 0;
  if (!has_pop && std::memcmp(code, kAdd, sizeof kAdd) != 0) return false;
  // A cursor that has met a frame without information goes no further, whatever it is set to: it begins anew, from a context
  // as unw_getcontext() lays it out.
  constexpr struct {
    int reg;
    std::size_t place;
  } kKept[] = {{UNW_X86_64_RBX, 1},  {UNW_X86_64_RBP, 6},  {UNW_X86_64_R12, 12},
               {UNW_X86_64_R13, 13}, {UNW_X86_64_R14, 14}, {UNW_X86_64_R15, 15}};
  constexpr std::size_t kFramePlace = 6, kStackPlace = 7, kAddressPlace = 16;
  unw_context_t context{};
  for (const auto& [reg, place] : kKept) {
    unw_word_t value = 0;
    if (unw_get_reg(&cursor, reg, &value) != 0) return false;
    context.data[place] = value;
  }
  if (has_pop) context.data[kFramePlace] = frame[0];
  context.data[kStackPlace] = stack + sizeof frame;
  context.data[kAddressPlace] = frame[1];
  return unw_init_local(&cursor, &context) == 0;
}

// Return addresses, innermost first, without the probe's own.
[[nodiscard]] unsigned walk_stack(std::uint64_t (&addresses)[kMaxDepth]) noexcept {
  unw_context_t context;
  unw_cursor_t cursor;
  if (unw_getcontext(&context) != 0 || unw_init_local(&cursor, &context) != 0) return 0;
  unsigned depth = 0;
  while (depth < kMaxDepth) {
    const bool is_known = unw_step(&cursor) > 0;
    unw_word_t address = 0;
    if (unw_get_reg(&cursor, UNW_REG_IP, &address) != 0 || address == 0) break;
    if (!is_known) {
      if (!step_over_trampoline(cursor, address)) break;
      addresses[depth++] = address;
      // Its caller, which the cursor stands at now without a step.
      if (depth == kMaxDepth || unw_get_reg(&cursor, UNW_REG_IP, &address) != 0) break;
    }
    if (depth == 0 && address >= g_file.own_begin && address < g_file.own_end) continue;
    addresses[depth++] = address;
  }
  return depth;
}

template <class Body>
void record(RecordKind kind, const Body& body, bool with_stack) noexcept {
  Thread& thread = t_thread;
  std::uint64_t addresses[kMaxDepth];
  const unsigned depth = with_stack ? walk_stack(addresses) : 0;
  const std::size_t bytes = sizeof(RecordHeader) + sizeof(Body) + depth * sizeof(std::uint64_t);
  std::byte* const at = room_for(thread, bytes);
  if (at == nullptr) return;
  ::new (at) RecordHeader{kind, static_cast<std::uint16_t>(depth), static_cast<std::uint32_t>(bytes)};
  ::new (at + sizeof(RecordHeader)) Body(body);
  std::memcpy(at + sizeof(RecordHeader) + sizeof(Body), addresses, depth * sizeof(std::uint64_t));
}

// Draws the next gap, whose mean becomes such that samples come about every kAimNs.
void draw_gap(Thread& thread, Countdown& calls) noexcept {
  const std::uint64_t now = ticks();
  const auto since = static_cast<double>(now - calls.last_ticks) / g_file.ticks_per_ns;
  if (calls.interval == 0)
    calls.interval = kFirstInterval;
  else if (since < kAimNs / 2.0)
    calls.interval = std::min(calls.interval * 2, kMostInterval);
  else if (since > kAimNs * 2.0)
    calls.interval = std::max<std::int64_t>(calls.interval / 2, 1);
  calls.last_ticks = now;
  calls.gap = 1 + static_cast<std::int64_t>(draw(thread) % static_cast<std::uint64_t>(2 * calls.interval - 1));
  calls.behind = calls.gap >= 2 * kWarmCalls ? kWarmCalls : 0;
  calls.left = calls.gap - calls.behind;
  calls.clocks = {};
}

void next_epoch(std::uint64_t now) noexcept {
  std::uint64_t due = g_file.next_epoch_ticks.load(std::memory_order_relaxed);
  if (now < due) return;
  const std::uint64_t next = now + static_cast<std::uint64_t>(static_cast<double>(kEpochNs) * g_file.ticks_per_ns);
  // relaxed: whoever changes it first begins the epoch; others see it soon
  if (g_file.next_epoch_ticks.compare_exchange_strong(due, next, std::memory_order_relaxed))
    g_epoch.store(mix(now) | 1, std::memory_order_relaxed);
}

// What every entry into the recorder begins and ends with.
class Entry {
 public:
  Entry() noexcept : began_(ticks()) {
    Thread& thread = t_thread;
    thread.inside = true;
    if (thread.id == 0) {
      thread.id = static_cast<std::uint32_t>(syscall(SYS_gettid));
      thread.random = mix(began_ ^ thread.id) | 1;
      pthread_setspecific(g_file.key, &thread);
      add_totals(thread, false);  // its beginning
    }
  }
  ~Entry() {
    Thread& thread = t_thread;
    thread.probe_ticks += ticks() - began_;
    thread.inside = false;
  }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

 private:
  KeepErrno errno_;
  std::uint64_t began_;
};

// ---- which blocks are sampled ----

[[nodiscard]] bool is_empty(std::size_t line) noexcept {
  for (std::size_t i = 0; i < std::size_t{1} << kPlacesBits; ++i)
    if (g_table[(line << kPlacesBits) + i].load() != 0) return false;
  return true;
}
// One place for each hash: of a block that finds it taken, the end is not recorded. Returns whether it will be.
[[nodiscard]] bool remember(const void* block) noexcept {
  std::uint64_t none = 0;
  const std::size_t place = place_of(block), line = place >> kPlacesBits;
  if (!g_table[place].compare_exchange_strong(none, reinterpret_cast<std::uintptr_t>(block)))
    return none == reinterpret_cast<std::uintptr_t>(block);  // an end that nobody saw
  g_filter[line / 64].fetch_or(base::bit(line % 64));
  return true;
}
// Whoever takes a place sets the line's bit after that: either it is seen here, or the bit is set again after it was
// cleared.
void forget(std::size_t place) noexcept {
  const std::size_t line = place >> kPlacesBits;
  g_table[place].store(0);
  if (!is_empty(line)) return;
  g_filter[line / 64].fetch_and(~base::bit(line % 64));
  if (!is_empty(line)) g_filter[line / 64].fetch_or(base::bit(line % 64));
}

// A thread's end; what it frees after this is recorded in another extent.
void leave(void* leaving) noexcept {
  Thread& thread = *static_cast<Thread*>(leaving);
  thread.inside = true;
  add_totals(thread, true);
  if (thread.extent != nullptr) ::munmap(thread.extent, kExtentBytes);
  thread.extent = thread.cursor = thread.end = nullptr;
  thread.inside = false;
}

void before_fork() { g_file.lock.lock(); }
void after_fork_in_parent() { g_file.lock.unlock(); }
void after_fork_in_child() {
  g_file.lock.unlock();
  Thread& thread = t_thread;
  const bool was_inside = std::exchange(thread.inside, true);
  const auto parent = g_file.header->pid;
  ::munmap(g_file.header, kExtentBytes);
  ::close(g_file.fd);
  g_file.generation.fetch_add(1, std::memory_order_relaxed);
  g_file.is_on.store(open_file(parent), std::memory_order_relaxed);
  thread.id = static_cast<std::uint32_t>(syscall(SYS_gettid));
  thread.inside = was_inside;
}

int find_own_code(dl_phdr_info* object, std::size_t, void*) {
  const auto here = reinterpret_cast<std::uintptr_t>(&find_own_code);
  for (unsigned i = 0; i < object->dlpi_phnum; ++i) {
    const auto& segment = object->dlpi_phdr[i];
    const std::uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    if (segment.p_type != PT_LOAD || here < begin || here >= begin + segment.p_memsz) continue;
    g_file.own_begin = begin;
    g_file.own_end = begin + segment.p_memsz;
    return 1;
  }
  return 0;
}

void calibrate() noexcept {
  const ClockReading begin = read_clocks();
  while (monotonic_ns(CLOCK_MONOTONIC) - begin.ns < 1'000'000) {
  }
  const ClockReading end = read_clocks();
  g_file.ticks_per_ns = static_cast<double>(end.ticks - begin.ticks) / static_cast<double>(end.ns - begin.ns);
  constexpr unsigned kTimes = 201;
  std::uint64_t empty[kTimes];
  for (std::uint64_t& measured : empty) {
    Measured nothing;
    nothing.end();
    measured = nothing.duration();
  }
  std::nth_element(empty, empty + kTimes / 2, empty + kTimes);
  g_file.header->empty_call_ticks = empty[kTimes / 2];
  for (auto& interval : g_file.wait_interval_ticks)
    interval.store(static_cast<std::uint64_t>(kAimNs * g_file.ticks_per_ns), std::memory_order_relaxed);
  constexpr unsigned kCalls = 20'000;
  const std::uint64_t before = ticks();
  unsigned seen = 0;
  for (unsigned i = 0; i < kCalls; ++i) {
    const auto* const block = reinterpret_cast<const void*>(static_cast<std::uintptr_t>(i) * 64);
    seen += may_be_sampled(block) + is_watched(block) + is_watched(block);
  }
  asm volatile("" ::"r"(seen));
  g_file.header->fast_path_picoseconds =
      static_cast<std::uint64_t>(static_cast<double>(ticks() - before) / g_file.ticks_per_ns * 1000 / kCalls);
}

}  // namespace

std::uint64_t ticks() noexcept {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  std::uint64_t count;
  asm volatile("mrs %0, cntvct_el0" : "=r"(count));
  return count;
#endif
}

namespace {
// The ticks last: what follows is what they are compared with.
[[nodiscard]] SlowClocks slow_clocks() noexcept {
  SlowClocks now{.ticks = 0, .cpu_ns = monotonic_ns(CLOCK_THREAD_CPUTIME_ID), .sleeps = sleeps()};
  now.ticks = ticks();
  return now;
}
}  // namespace

void get_ready(Countdown& calls) noexcept {
  const KeepErrno keep;
  calls.left = std::exchange(calls.behind, 0);
  calls.clocks = slow_clocks();
}

Measured::Measured() noexcept : before_(slow_clocks()), ticks_(ticks()) {}
Measured::Measured(const Countdown& calls) noexcept
    : before_(calls.clocks.ticks != 0 ? calls.clocks : slow_clocks()), ticks_(ticks()) {}
// Of all that the thread was off its CPU since the clocks were read, this call's part is at most as long as it was itself.
OffCpu Measured::off_cpu() const noexcept {
  constexpr double kWorthALookNs = 3000;  // shorter calls did not sleep
  const double wall = static_cast<double>(duration_) / g_file.ticks_per_ns;
  if (wall < kWorthALookNs) return {};
  const auto ran = static_cast<double>(monotonic_ns(CLOCK_THREAD_CPUTIME_ID) - before_.cpu_ns);
  const double since = static_cast<double>(ticks_ + duration_ - before_.ticks) / g_file.ticks_per_ns;
  const auto off_us = since <= ran ? 0 : static_cast<std::uint32_t>(std::min({since - ran, wall, 4e12}) / 1000);
  return sleeps() != before_.sleeps ? OffCpu{.waited_us = off_us, .preempted_us = 0}
                                    : OffCpu{.waited_us = 0, .preempted_us = off_us};
}

void start() noexcept {
  const KeepErrno keep;
  const bool was_inside = std::exchange(t_thread.inside, true);
  if (pthread_key_create(&g_file.key, leave) == 0 && open_file(0)) {
    if (const char* const most = std::getenv("FREEHOLD_PROBE_BYTES"); most != nullptr)
      g_file.most_bytes = std::max<std::uint64_t>(std::strtoull(most, nullptr, 10), 4 * kExtentBytes);
    dl_iterate_phdr(find_own_code, nullptr);
    calibrate();
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    g_file.is_on.store(true, std::memory_order_release);  // release: pairs with is_on(); publishes the file
  }
  t_thread.inside = was_inside;
}
bool is_on() noexcept { return g_file.is_on.load(std::memory_order_acquire); }

void finish() noexcept {
  if (!is_on() || t_thread.inside || t_thread.id == 0) return;
  const Entry entry;
  add_totals(t_thread, true);
  const sync::Guard guard(g_file.lock);
  write_maps();
}

void sampled_allocation(const Measured& call, void* block, std::size_t bytes) noexcept {
  const Entry entry;
  Thread& thread = t_thread;
  // A large block stands for itself and leaves the countdown alone.
  const bool is_due = thread.allocations.left <= 0 && thread.allocations.behind == 0;
  const auto weight = is_due ? static_cast<std::uint64_t>(std::max<std::int64_t>(thread.allocations.gap, 1)) : 1;
  const OffCpu off = call.off_cpu();
  record(RecordKind::kAllocate,
         Sample{.ticks = call.began(),
                .block = reinterpret_cast<std::uintptr_t>(block),
                .size = bytes,
                .weight = weight,
                .duration = static_cast<std::uint32_t>(std::min<std::uint64_t>(call.duration(), UINT32_MAX)),
                .waited_us = off.waited_us,
                .preempted_us = off.preempted_us,
                .end_is_watched = remember(block) ? 1U : 0U},
         true);
  next_epoch(call.began());
  if (!is_due) return;
  thread.allocations.calls += weight;
  draw_gap(thread, thread.allocations);
  if ((draw(thread) & 63) == 0) add_totals(thread, false);
}

void sampled_free(const Measured& call, void* block) noexcept {
  const Entry entry;
  Thread& thread = t_thread;
  const OffCpu off = call.off_cpu();
  const auto weight = static_cast<std::uint64_t>(std::max<std::int64_t>(thread.frees.gap, 1));
  record(RecordKind::kTimedFree,
         Sample{.ticks = call.began(),
                .block = reinterpret_cast<std::uintptr_t>(block),
                .size = 0,
                .weight = weight,
                .duration = static_cast<std::uint32_t>(std::min<std::uint64_t>(call.duration(), UINT32_MAX)),
                .waited_us = off.waited_us,
                .preempted_us = off.preempted_us,
                .end_is_watched = 0},
         true);
  thread.frees.calls += weight;
  draw_gap(thread, thread.frees);
}

void end_of_sampled(void* block) noexcept {
  const std::size_t place = place_of(block);
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  // relaxed: the block's own way from who allocated it to who frees it orders what is known of it
  if (g_table[place].load(std::memory_order_relaxed) != address) return;
  const Entry entry;
  record(RecordKind::kFree,
         Sample{.ticks = ticks(),
                .block = address,
                .size = 0,
                .weight = 0,
                .duration = 0,
                .waited_us = 0,
                .preempted_us = 0,
                .end_is_watched = 0},
         true);
  forget(place);
}

namespace {
// Whether the thread may record another event of a page now.
[[nodiscard]] bool has_token(Thread& thread) noexcept {
  if (const std::uint64_t epoch = g_epoch.load(std::memory_order_relaxed); thread.page_epoch != epoch) {
    thread.page_epoch = epoch;
    thread.page_tokens = kPageTokens;
  }
  if (thread.page_tokens == 0) return false;
  --thread.page_tokens;
  return true;
}
}  // namespace

void page_allocation(void* block, std::size_t bytes) noexcept {
  if (!is_on() || !has_token(t_thread)) return;
  const Entry entry;
  record(
      RecordKind::kPageAllocate,
      PageEvent{
          .ticks = ticks(), .block = reinterpret_cast<std::uintptr_t>(block), .size = bytes, .epoch = t_thread.page_epoch},
      true);
}
void page_free(void* block) noexcept {
  if (!is_on() || !has_token(t_thread)) return;
  const Entry entry;
  record(
      RecordKind::kPageFree,
      PageEvent{.ticks = ticks(), .block = reinterpret_cast<std::uintptr_t>(block), .size = 0, .epoch = t_thread.page_epoch},
      false);
}

// One draw for each wait, with a chance in proportion to its length: unbiased, whatever the lengths are.
void waited(WaitKind kind, const void* lock, std::uint64_t began, std::uint64_t ended) noexcept {
  Thread& thread = t_thread;
  if (thread.id == 0) {
    const Entry first;
  }
  const std::uint64_t duration = std::max<std::uint64_t>(ended - began, 1);
  auto& interval_ticks = g_file.wait_interval_ticks[is_idleness(kind)];
  const std::uint64_t interval = interval_ticks.load(std::memory_order_relaxed);  // relaxed: any recent one will do
  if (duration < interval && draw(thread) % interval >= duration) return;
  const Entry entry;
  record(RecordKind::kWait,
         Wait{.ticks = began,
              .lock = reinterpret_cast<std::uintptr_t>(lock),
              .duration = duration,
              .weight = duration < interval ? static_cast<double>(interval) / static_cast<double>(duration) : 1,
              .kind = static_cast<std::uint64_t>(kind)},
         true);
  // relaxed: a lost change is made up for by the next one
  const std::uint64_t last = g_file.last_wait_ticks[is_idleness(kind)].exchange(ended, std::memory_order_relaxed);
  const double since_ns = last < ended ? static_cast<double>(ended - last) / g_file.ticks_per_ns : 0;
  if (since_ns < kAimNs / 2.0)
    interval_ticks.store(std::min(interval * 2, kMostWaitTicks), std::memory_order_relaxed);
  else if (since_ns > kAimNs * 2.0)
    interval_ticks.store(std::max(interval / 2, static_cast<std::uint64_t>(kAimNs * g_file.ticks_per_ns)),
                         std::memory_order_relaxed);
  if ((draw(thread) & 63) == 0) add_totals(thread, false);
}

}  // namespace freehold::doctor::probe
