// SPDX-License-Identifier: MIT
#include "tools/doctor/probe/recorder.hpp"

#include <link.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "freehold/base/keep_errno.hpp"
#include "freehold/os/mapped_file.hpp"
#include "freehold/os/threads.hpp"
#include "freehold/sync/lock.hpp"
#include "tools/doctor/probe/stack_walk.hpp"
#include "tools/doctor/probe/trace_file.hpp"
#include "tools/doctor/probe/trace_format.hpp"

namespace freehold::doctor::probe {

constinit thread_local Thread t_thread{};
constinit SampledBlocks<sync::NativeAtomics, 18, 3> g_sampled{};
constinit std::atomic<std::uint64_t> g_epoch{1};
constinit std::size_t g_bytes_mask = 0;
constinit bool g_all = false;

namespace {

constexpr std::int64_t kFirstInterval = 1;   // what a thread allocates first often lives for long
constexpr unsigned kSamplesAtInterval = 32;  // of a process's first thread; 2 ms in all. Others share in the sum of samples
constexpr std::int64_t kWarmCalls = 16;      // between reading the slow clocks and a sample
constexpr std::int64_t kMostInterval = std::int64_t{1} << 24;
constexpr std::int64_t kMostByteInterval = std::int64_t{1} << 20;  // so much one sample may add to what seems to be live
constexpr std::uint64_t kAimNs = 1'000'000;                        // between two samples of a kind and thread
constexpr double kMostRecordNs = 100'000;  // that recording takes at once: for longer the thread had no CPU
constexpr std::uint64_t kMostWaitTicks = std::uint64_t{1} << 32;  // about a second
constexpr std::uint64_t kEpochNs = 20'000'000;                    // for which the same pages are watched
constexpr std::uint32_t kPageTokens = 64;  // events of a thread in watched pages, for each epoch: about 1% of its time

constinit std::atomic<unsigned> g_threads{0};  // that have begun

[[nodiscard]] std::uint64_t draw(Thread& thread) noexcept {
  thread.random ^= thread.random << 13;  // Marsaglia's xorshift64
  thread.random ^= thread.random >> 7;
  thread.random ^= thread.random << 17;
  return thread.random;
}

template <class Body>
void record(RecordKind kind, const Body& body, bool with_stack) noexcept {
  Thread& thread = t_thread;
  std::uint64_t addresses[kMaxDepth];
  const unsigned depth = with_stack && !g_all ? walk_stack(addresses) : 0;
  const std::size_t bytes = sizeof(RecordHeader) + sizeof(Body) + depth * sizeof(std::uint64_t);
  std::byte* const at = room_for(thread, bytes);
  if (at == nullptr) return;
  ::new (at) RecordHeader{kind, static_cast<std::uint16_t>(depth), static_cast<std::uint32_t>(bytes)};
  ::new (at + sizeof(RecordHeader)) Body(body);
  std::memcpy(at + sizeof(RecordHeader) + sizeof(Body), addresses, depth * sizeof(std::uint64_t));
}

// The mean of the gaps becomes such that samples come about every kAimNs; it is doubled after so many samples that came too
// soon.
void adapt_interval(Countdown& calls, unsigned early_samples, std::int64_t most) noexcept {
  const std::uint64_t now = ticks();
  const auto since = static_cast<double>(now - calls.last_ticks) / g_file.ticks_per_ns;
  if (calls.interval == 0) {
    calls.interval = kFirstInterval;
  } else if (since < kAimNs / 2.0 && ++calls.early >= early_samples) {
    calls.interval = std::min(calls.interval * 2, most);
    calls.early = 0;
  } else if (since > kAimNs * 2.0) {
    calls.interval = std::max<std::int64_t>(calls.interval / 2, 1);
  }
  calls.last_ticks = now;
}
void draw_gap(Thread& thread, Countdown& calls) noexcept {
  calls.gap = 1 + static_cast<std::int64_t>(draw(thread) % static_cast<std::uint64_t>(2 * calls.interval - 1));
  calls.behind = calls.gap >= 2 * kWarmCalls ? kWarmCalls : 0;
  calls.left = calls.gap - calls.behind;
  calls.clocks = {};
}

// Sample of an allocation that came to the end of the countdown, or of one that is recorded in any case: the calls that it
// stands for. Draws the next gap.
[[nodiscard]] std::uint64_t weigh_call(Thread& thread, bool is_certain) noexcept {
  Countdown& calls = thread.allocations;
  if (is_certain) return 1;
  const auto weight = static_cast<std::uint64_t>(std::max<std::int64_t>(calls.gap, 1));
  adapt_interval(calls, thread.samples_at_interval, kMostInterval);
  draw_gap(thread, calls);
  return weight;
}
// The same in bytes. The gaps follow one another without regard to where blocks end, so that each byte is as likely as any
// other to be where one ends: a block may contain several ends, and stands for all of their gaps.
[[nodiscard]] std::uint64_t weigh_bytes(Thread& thread, std::size_t bytes, bool is_certain) noexcept {
  Countdown& calls = thread.allocations;
  std::uint64_t weight = 0;
  if (is_certain) {
    weight = counted_bytes(bytes);
    adapt_interval(calls, thread.samples_at_interval, kMostByteInterval);
    if (calls.gap == 0) draw_gap(thread, calls);
  } else {
    adapt_interval(calls, thread.samples_at_interval, kMostByteInterval);
    while (calls.left <= 0) {
      weight += static_cast<std::uint64_t>(calls.gap);
      const std::int64_t over = calls.left;
      draw_gap(thread, calls);
      calls.left += std::exchange(calls.behind, 0) + over;
    }
  }
  const auto least = static_cast<std::uint64_t>(2 * calls.interval);  // longer than any gap
  thread.all_from = std::min<std::size_t>(kLargeBytes, least <= counted_bytes(0) ? 0 : least - counted_bytes(0));
  return weight;
}

void next_epoch(std::uint64_t now) noexcept {
  std::uint64_t due = g_file.next_epoch_ticks.load(std::memory_order_relaxed);
  if (now < due) return;
  const std::uint64_t next = now + static_cast<std::uint64_t>(static_cast<double>(kEpochNs) * g_file.ticks_per_ns);
  // relaxed: the first thread that changes it begins the epoch; others see it soon
  if (g_file.next_epoch_ticks.compare_exchange_strong(due, next, std::memory_order_relaxed))
    g_epoch.store(mix(now) | 1, std::memory_order_relaxed);
}

// Every entry into the recorder begins and ends with this.
class Entry {
 public:
  Entry() noexcept : began_(ticks()) {
    Thread& thread = t_thread;
    thread.inside = true;
    if (thread.id == 0) {
      thread.id = static_cast<std::uint32_t>(os::thread_id());
      thread.random = mix(began_ ^ thread.id) | 1;
      if (g_bytes_mask == 0) thread.all_from = g_all ? 0 : kLargeBytes;
      // relaxed: a number that several threads take is as good
      thread.samples_at_interval =
          std::max(kSamplesAtInterval / (1 + g_threads.fetch_add(1, std::memory_order_relaxed)), 1U);
      pthread_setspecific(g_file.key, &thread);
      add_totals(thread, false);  // its beginning
    }
  }
  ~Entry() {
    Thread& thread = t_thread;
    const auto most = static_cast<std::uint64_t>(kMostRecordNs * g_file.ticks_per_ns);
    thread.probe_ticks += std::min(ticks() - began_, most);
    thread.inside = false;
  }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

 private:
  base::KeepErrno errno_;
  std::uint64_t began_;
};

// A thread's end; what it frees after this is recorded in another extent.
void leave(void* leaving) noexcept {
  Thread& thread = *static_cast<Thread*>(leaving);
  thread.inside = true;
  add_totals(thread, true);
  close_extent(thread);
  thread.inside = false;
}

// Nothing is recorded from here to the fork's end: a signal handler that ends the process would wait for a lock of the same
// thread.
void before_fork() {
  t_thread.inside = true;
  g_file.lock.lock();
}
void after_fork_in_parent() {
  g_file.lock.unlock();
  t_thread.inside = false;
}
void after_fork_in_child() {
  g_file.lock.unlock();
  g_threads.store(0, std::memory_order_relaxed);  // there is one
  Thread& thread = t_thread;
  const std::uint32_t parent = leave_file();
  g_file.generation.fetch_add(1, std::memory_order_relaxed);
  g_file.is_on.store(open_file(parent), std::memory_order_relaxed);
  thread.id = 0;  // the next entry begins its record
  thread.inside = false;
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
    seen += g_sampled.may_have(block) + is_watched(block) + is_watched(block);
  }
  asm volatile("" ::"r"(seen));
  g_file.header->fast_path_picoseconds =
      static_cast<std::uint64_t>(static_cast<double>(ticks() - before) / g_file.ticks_per_ns * 1000 / kCalls);
}

}  // namespace

void start() noexcept {
  const base::KeepErrno keep;
  const bool was_inside = std::exchange(t_thread.inside, true);
  const char* const counted = std::getenv("FREEHOLD_PROBE_SAMPLE");
  g_bytes_mask = counted != nullptr && std::strcmp(counted, "bytes") == 0 ? ~std::size_t{0} : 0;
  g_all = counted != nullptr && std::strcmp(counted, "all") == 0;
  if (g_all) g_sampled.suspect_all();
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

// A child of vfork() has its parent's memory, and is not to end it.
void finish() noexcept {
  if (!is_on() || t_thread.inside || t_thread.id == 0 || g_file.header->pid != static_cast<std::uint32_t>(::getpid()))
    return;
  const Entry entry;
  add_totals(t_thread, true);
  const sync::Guard guard(g_file.lock);
  write_maps();
}

void sampled_allocation(const Measured& call, void* block, std::size_t bytes) noexcept {
  Thread& thread = t_thread;
  const bool is_first = thread.allocations.interval == 0, is_by_bytes = g_bytes_mask != 0;
  const bool is_certain = bytes >= thread.all_from && (is_by_bytes || !is_first);
  const Entry entry;
  const OffCpu off = call.off_cpu();
  const std::uint64_t weight = is_by_bytes ? weigh_bytes(thread, bytes, is_certain) : weigh_call(thread, is_certain);
  thread.allocations.calls += weight;
  record(RecordKind::kAllocate,
         Sample{.ticks = call.began(),
                .block = reinterpret_cast<std::uintptr_t>(block),
                .size = bytes,
                .weight = weight,
                .duration = static_cast<std::uint32_t>(std::min<std::uint64_t>(call.duration(), UINT32_MAX)),
                .waited_us = off.waited_us,
                .preempted_us = off.preempted_us,
                .end_is_watched = g_all || g_sampled.insert(block) ? 1U : 0U},
         true);
  next_epoch(call.began());
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
  adapt_interval(thread.frees, 1, kMostInterval);
  draw_gap(thread, thread.frees);
}

void end_of_sampled(void* block) noexcept {
  if (!g_all && !g_sampled.has(block)) return;
  const Entry entry;
  record(RecordKind::kFree,
         Sample{.ticks = ticks(),
                .block = reinterpret_cast<std::uintptr_t>(block),
                .size = 0,
                .weight = 0,
                .duration = 0,
                .waited_us = 0,
                .preempted_us = 0,
                .end_is_watched = 0},
         true);
  if (!g_all) g_sampled.remove(block);
}

namespace {
// Returns whether the thread may record another event of a page now.
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
