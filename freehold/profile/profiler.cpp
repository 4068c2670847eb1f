// SPDX-License-Identifier: MIT
#include "freehold/profile/profiler.hpp"

#include <algorithm>
#include <cstring>

#include "freehold/base/bits.hpp"
#include "freehold/check/call_stacks.hpp"
#include "freehold/os/probe_point.hpp"
#include "freehold/profile/mark_weights.hpp"
#include "freehold/sync/live_list.hpp"
#include "freehold/sync/lock.hpp"

namespace freehold::profile {

constinit std::atomic<std::uint64_t> profiler::g_mean{0};
constinit std::atomic<bool> profiler::g_started{false};
constinit SampleTable<sync::NativeAtomics> profiler::g_table;
constinit thread_local ByteSampler profiler::t_sampler;
constinit thread_local bool profiler::t_own_memory = false;

using namespace profiler;

namespace {

using Table = decltype(g_table);

constinit sync::Mutex<sync::NativeAtomics> g_start_lock;

// Written under the lock, before there is a sample with their number.
constinit LiveHeapName* g_heap_names = nullptr;
constinit std::uint32_t g_used_heap_names = 1;  // with that of no heap
constinit sync::Mutex<sync::NativeAtomics> g_heap_names_lock;
constexpr std::uint32_t kOtherHeaps = kHeapNames - 1;
static_assert(check::kMostStackNumbers <= std::size_t{1} << kStackBits);

[[nodiscard]] std::uintptr_t address_of(const void* block) noexcept { return reinterpret_cast<std::uintptr_t>(block); }

[[nodiscard]] bool make_table(os::Pages& pages) noexcept {
  const std::size_t bytes =
      base::align_up(Table::memory_bytes(kPlaces) + kHeapNames * sizeof(LiveHeapName), os::kLargestPageBytes);
  void* const memory = pages.map(bytes);
  if (memory == nullptr) return false;
  pages.name(memory, bytes, "freehold heap profile");
  auto* const places = static_cast<Table::Place*>(memory);
  auto* const log = reinterpret_cast<Sample*>(places + kPlaces);
  g_table.init(places, kPlaces, log);
  g_heap_names = reinterpret_cast<LiveHeapName*>(log + kPlaces);
  std::strcpy(g_heap_names[kOtherHeaps].text, "(one of many heaps)");
  return true;
}

// Serves `freehold heap snapshot`. Written once, never read in this process.
[[gnu::used]] constinit LiveProfile g_live{};
[[gnu::used]] constinit sync::LiveListDirectory g_directory{};

void publish_live_profile() noexcept {
  g_live.version = kLiveProfileVersion;
  g_table.describe(g_live);
  g_live.mean = address_of(&g_mean);
  const check::LiveCallStacks stacks = check::live_call_stacks();
  g_live.stack_words = stacks.words;
  g_live.used_stack_words = stacks.used;
  g_live.heap_names = address_of(g_heap_names);
  g_directory.kind = sync::LiveList::kProfile;
  g_directory.changes = address_of(&g_table.changes().number());
  g_directory.layout = address_of(&g_live);
  g_directory.layout_bytes = sizeof g_live;
  sync::publish(g_directory);
}

// For tracers that listen; not inlined, so that each point has one place.
[[gnu::noinline]] void tell_alloc(const Sample& sample) noexcept {
  os::probe_sampled_alloc(sample.block, sample.bytes, sample.estimated_bytes());
}
[[gnu::noinline]] void tell_free(const Sample& sample) noexcept { os::probe_sampled_free(sample.block); }

void insert(const Sample& sample) noexcept {
  if (g_table.insert(sample)) tell_alloc(sample);
}
[[nodiscard]] bool remove(const void* block, Sample& sample) noexcept {
  if (!g_table.remove(address_of(block), sample)) return false;
  tell_free(sample);
  return true;
}

}  // namespace

bool prepare(os::Pages& pages, unsigned depth) noexcept {
  const sync::Guard guard(g_start_lock);
  const bool is_first = !g_started.load(std::memory_order_relaxed);  // relaxed: under the lock
  if (is_first && !make_table(pages)) return false;
  check::keep_call_stacks(depth);
  if (is_first) publish_live_profile();
  g_started.store(true, std::memory_order_release);
  return true;
}

void start(std::uint64_t mean) noexcept { g_mean.store(mean, std::memory_order_release); }
void stop() noexcept { g_mean.store(0, std::memory_order_release); }

std::uint32_t origin_in_heap(std::uint32_t stack, const char* name) noexcept {
  const sync::Guard guard(g_heap_names_lock);
  constexpr std::size_t kMost = sizeof(LiveHeapName::text) - 1;
  std::uint32_t number = 1;
  while (number < g_used_heap_names && std::strncmp(g_heap_names[number].text, name, kMost) != 0) ++number;
  if (number == g_used_heap_names && number < kOtherHeaps) {
    std::memcpy(g_heap_names[number].text, name, std::min(std::strlen(name), kMost));  // zeros follow
    ++g_used_heap_names;
  }
  return number << kStackBits | stack;
}
const char* heap_name(std::uint32_t number) noexcept { return g_heap_names[number].text; }

void add(void* block, std::size_t bytes, std::size_t size, std::uint32_t origin, std::uint32_t weight,
         std::uint32_t home) noexcept {
  insert({address_of(block), bytes, size, thinned_mean(size, mean(), weight), origin, home});
}

Forgotten forget(const void* block) noexcept {
  Sample sample;
  if (!remove(block, sample)) return {};
  return {sample.size, weight_of(sample.size, mean(), sample.mean)};
}

std::size_t size_of(const void* block) noexcept {
  Sample sample;
  return g_table.find(address_of(block), sample) ? sample.size : 0;
}

void resize(const void* block, std::size_t bytes) noexcept {
  Sample sample;
  if (!g_table.resize(address_of(block), bytes, sample)) return;
  tell_free(sample);
  tell_alloc(sample);
}

Former take(const void* block) noexcept {
  Former former;
  former.is_sampled = remove(block, former.sample);
  return former;
}

void put_again(const Former& former) noexcept {
  if (former.is_sampled) insert(former.sample);
}

void after_fork_in_child() noexcept {
  g_start_lock.reset();
  g_heap_names_lock.reset();
  g_table.after_fork_in_child();
}

}  // namespace freehold::profile
