// SPDX-License-Identifier: MIT
// Counts of a thread: its calls come by here (detour.hpp), and what stands behind serves them. A count within a count, or
// within a scope, stands before the outer one.
#include "freehold/alloc/observe/count.hpp"

#include <new>

#include "freehold/alloc/engine_state.hpp"
#include "freehold/alloc/scope/detour.hpp"
#include "freehold/check/report.hpp"
#include "freehold/os/call_stack.hpp"
#include "freehold/os/system_call.hpp"
#include "freehold/os/text_line.hpp"

namespace freehold::alloc {

using namespace engine;

void engine::Detour::report() const noexcept {
  static constexpr char kLine[] = "freehold: an allocation where none is allowed\n";
  os::write_to_standard_error(kLine, sizeof kLine - 1);
  void* addresses[os::kMostFrames];
  const unsigned count = os::capture_call_stack(addresses, os::kMostFrames, 0), own_ones = os::own_frames(addresses, count);
  check::detail_stack(addresses + own_ones, count - own_ones);
  if (what == OnAllocation::kAbort) os::kernel::abort();
}

Detour* engine::present_detour() noexcept { return detour_of(t_cache); }

NativeCache* engine::cache_behind(NativeCache* cache) noexcept {
  while (const Detour* const detour = detour_of(cache)) cache = detour->own;
  return cache->id != 0 ? cache : nullptr;
}

engine::Uncounted::Uncounted() noexcept : head_(t_cache) {
  for (Detour* detour = detour_of(head_); detour != nullptr; detour = detour_of(detour->own)) last_ = detour;
  if (last_ != nullptr) t_cache = last_->own;
}
engine::Uncounted::~Uncounted() {
  if (last_ == nullptr) return;
  if (NativeCache* const behind = t_cache; behind != last_->own) [[unlikely]] {  // a first call may have found a cache
    last_->own = behind;
    for (Detour* detour = detour_of(head_); detour != nullptr; detour = detour_of(detour->own))
      detour->cache = behind->id != 0 ? behind : nullptr;
  }
  t_cache = head_;
}

constinit std::atomic<Detour*> engine::g_detours{nullptr};

Detour* engine::claim_detour() noexcept {
  const Uncounted uncounted;
  (void)own_cache();
  if (g_start.load(std::memory_order_acquire) != Start::kReady && !start()) return nullptr;
  Detour* claimed = nullptr;
  for_each_detour([&](Detour& each) {
    const void* nobody = nullptr;
    if (claimed == nullptr && each.thread.compare_exchange_strong(nobody, &t_cache, std::memory_order_acquire))
      claimed = &each;
  });
  if (claimed != nullptr) {
    empty_detour(*claimed);  // a thread that a fork's child does not have may have been in its scope
    return claimed;
  }
  void* const memory = g_pages.map(base::align_up(sizeof(Detour), NativeConfig::kPageBytes));
  if (memory == nullptr) return nullptr;
  claimed = new (memory) Detour;
  claimed->thread.store(&t_cache, std::memory_order_relaxed);  // relaxed: published with it
  claimed->next = g_detours.load(std::memory_order_relaxed);
  while (!g_detours.compare_exchange_weak(claimed->next, claimed, std::memory_order_release, std::memory_order_relaxed))
    continue;
  // For good: calls that have no slow call of a slot's come by from now on. Relaxed: other threads need not know.
  Mode usual = Mode::kUsual;
  (void)g_mode.compare_exchange_strong(usual, Mode::kDetoured, std::memory_order_relaxed);
  return claimed;
}

void engine::release_detours(NativeCache* first) noexcept {
  while (first != nullptr) {
    NativeCache* const next = std::exchange(first->spare_detour, nullptr);
    reinterpret_cast<Detour*>(first)->thread.store(nullptr, std::memory_order_release);
    first = next;
  }
}

void engine::end_detours() noexcept {
  while (Detour* const detour = present_detour()) end_detour(*detour);
}

namespace {

[[nodiscard]] void* note_allocation(Detour& newest, void* block) noexcept {
  if (block != nullptr && newest.some_count)
    for_each_count(newest, [bytes = usable_size(block)](Detour& each) { each.note_allocation(bytes); });
  return block;
}

}  // namespace

void engine::note_free(Detour* newest, const void* block) noexcept {
  if (newest != nullptr && newest->some_count)
    for_each_count(*newest, [bytes = usable_size(block)](Detour& each) { each.note_free(bytes); });
}

void* engine::allocate_counted(NativeCache& head, SizeClass c, std::size_t bytes, std::size_t alignment) noexcept {
  Detour& detour = reinterpret_cast<Detour&>(head);
  void* block = filled(allocate_scoped(detour, bytes, alignment), bytes);
  if (block == nullptr && detour.heap.load(std::memory_order_relaxed) == nullptr) {
    const Uncounted uncounted;
    NativeCache& own = *t_cache;
    block = own.pop(c);
    if (block == nullptr) block = own.slow.load(std::memory_order_relaxed)->allocate(own, c, bytes, alignment);
  }
  return note_allocation(detour, block);
}

void engine::free_counted(NativeCache& head, SizeClass c, void* slot) noexcept {
  note_free(&reinterpret_cast<Detour&>(head), slot);
  const Uncounted uncounted;
  NativeCache& own = *t_cache;
  if (!own.push(c, slot)) own.slow.load(std::memory_order_relaxed)->free(own, c, slot);
}

void* engine::allocate_counted(Detour& detour, const check::Request& request, bool zeroed) noexcept {
  void* block = allocate_scoped(detour, request.bytes, request.alignment);
  if (block != nullptr) {
    if (zeroed) clear(block, request.bytes);
  } else if (detour.heap.load(std::memory_order_relaxed) == nullptr) {
    const Uncounted uncounted;
    block = allocate_unusual(request, zeroed);
  }
  return note_allocation(detour, block);
}

void engine::free_counted(Detour& detour, void* block, const Claim& claim) noexcept {
  note_free(&detour, block);
  const Uncounted uncounted;
  deallocate_as(block, claim);
}

void* engine::reallocate_counted(Detour& detour, void* block, std::size_t bytes) noexcept {
  const std::size_t old = usable_size(block);
  // A block that has to move goes where a new one would be.
  if (detour.heap.load(std::memory_order_relaxed) != nullptr && old != 0 && (bytes > old || bytes < old / 2))
    return move_block(block, old, bytes);
  void* fresh;
  {
    const Uncounted uncounted;
    fresh = reallocate(block, bytes);
  }
  if (fresh == nullptr) return nullptr;
  for_each_count(detour, [old](Detour& each) { each.note_free(old); });
  return note_allocation(detour, fresh);
}

bool begin_count(OnAllocation what) noexcept {
  if (what != OnAllocation::kCount) os::prepare_call_stacks();  // it may load the unwinder
  Detour* const detour = begin_detour(heap_of(present_detour()));
  if (detour == nullptr) return false;
  detour->counts = detour->some_count = true;
  detour->keep(false);
  detour->what = what;
  detour->counted = {};
  detour->live = 0;
  return true;
}

bool end_count(Counts& counts) noexcept {
  Detour* const detour = present_detour();
  if (detour == nullptr || !detour->counts) return false;
  counts = detour->counted;
  end_detour(*detour);
  return true;
}

}  // namespace freehold::alloc
