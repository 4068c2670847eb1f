// SPDX-License-Identifier: MIT
// Counts of a thread. While it counts, the thread's word leads to a cache whose bins are empty and full at once, so that
// every call comes by here; behind it stands what the word led to before, which serves the call. Fast paths know nothing of
// it, and neither do other threads. A count within a count stands before the outer one.
#include "freehold/alloc/observe/count.hpp"

#include <algorithm>
#include <new>

#include "freehold/alloc/engine_state.hpp"
#include "freehold/check/report.hpp"
#include "freehold/os/call_stack.hpp"
#include "freehold/os/system_call.hpp"
#include "freehold/os/text_line.hpp"

namespace freehold::alloc {

using namespace engine;

struct engine::Detour {
  NativeCache head{g_nothing, &kCounted};  // first: the thread's word has its address
  NativeCache* own = nullptr;              // a cache, one of g_modes, or the head of an outer count
  OnAllocation what = OnAllocation::kCount;
  Counts counts;
  std::int64_t live = 0;

  void* note_allocation(void* block, std::size_t bytes) noexcept {
    if (block == nullptr) return nullptr;
    if (counts.allocations++ == 0 && what != OnAllocation::kCount) report();
    counts.allocated_bytes += bytes;
    live += static_cast<std::int64_t>(bytes);
    if (live > 0) counts.peak_bytes = std::max(counts.peak_bytes, static_cast<std::uint64_t>(live));
    return block;
  }
  void note_free(std::size_t bytes) noexcept {
    ++counts.frees;
    counts.freed_bytes += bytes;
    live -= static_cast<std::int64_t>(bytes);
  }
  [[gnu::cold, gnu::noinline]] void report() const noexcept {
    static constexpr char kLine[] = "freehold: an allocation where none is allowed\n";
    os::write_to_standard_error(kLine, sizeof kLine - 1);
    void* addresses[os::kMostFrames];
    const unsigned count = os::capture_call_stack(addresses, os::kMostFrames, 0),
                   own_ones = os::own_frames(addresses, count);
    check::detail_stack(addresses + own_ones, count - own_ones);
    if (what == OnAllocation::kAbort) os::kernel::abort();
  }
};

namespace {

// The thread's word leads to what stands behind the count.
class Behind {
 public:
  explicit Behind(Detour& detour) noexcept : detour_(detour) { t_cache = detour.own; }
  ~Behind() {
    detour_.own = t_cache;  // a first call may have found a cache
    t_cache = &detour_.head;
  }
  Behind(const Behind&) = delete;
  Behind& operator=(const Behind&) = delete;

 private:
  Detour& detour_;
};

[[nodiscard]] Detour* detour_of(NativeCache* cache) noexcept {
  return cache->slow.load(std::memory_order_relaxed) == &kCounted ? reinterpret_cast<Detour*>(cache) : nullptr;
}

}  // namespace

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
  last_->own = t_cache;
  t_cache = head_;
}

void* engine::allocate_counted(NativeCache& head, SizeClass c, std::size_t bytes, std::size_t alignment) noexcept {
  Detour& detour = reinterpret_cast<Detour&>(head);
  NativeCache* const own = detour.own;
  if (void* const slot = own->pop(c); slot != nullptr) return detour.note_allocation(slot, Classes::slot_bytes(c));
  void* block;
  {
    const Behind behind(detour);
    block = own->slow.load(std::memory_order_relaxed)->allocate(*own, c, bytes, alignment);
  }
  return detour.note_allocation(block, usable_size(block));
}

void engine::free_counted(NativeCache& head, SizeClass c, void* slot) noexcept {
  Detour& detour = reinterpret_cast<Detour&>(head);
  detour.note_free(is_checked() ? usable_size(slot) : Classes::slot_bytes(c));
  NativeCache* const own = detour.own;
  if (own->push(c, slot)) return;
  const Behind behind(detour);
  own->slow.load(std::memory_order_relaxed)->free(*own, c, slot);
}

void* engine::allocate_counted(Detour& detour, const check::Request& request, bool zeroed) noexcept {
  void* block;
  {
    const Behind behind(detour);
    block = allocate_unusual(request, zeroed);
  }
  return detour.note_allocation(block, usable_size(block));
}

void engine::free_counted(Detour& detour, void* block, const Claim& claim) noexcept {
  detour.note_free(usable_size(block));
  const Behind behind(detour);
  deallocate_as(block, claim);
}

void* engine::reallocate_counted(Detour& detour, void* block, std::size_t bytes) noexcept {
  const std::size_t old = usable_size(block);
  void* fresh;
  {
    const Behind behind(detour);
    fresh = reallocate(block, bytes);
  }
  if (fresh == nullptr) return nullptr;
  detour.note_free(old);
  return detour.note_allocation(fresh, usable_size(fresh));
}

bool begin_count(OnAllocation what) noexcept {
  if (what != OnAllocation::kCount) os::prepare_call_stacks();  // it may load the unwinder
  Detour* detour;
  {
    const Uncounted uncounted;
    void* const memory = allocate(sizeof(Detour));
    if (memory == nullptr) return false;
    detour = new (memory) Detour;
  }
  // For good: calls that have no slow call of a slot's come by from now on. Relaxed: other threads need not know.
  Mode usual = Mode::kUsual;
  (void)g_mode.compare_exchange_strong(usual, Mode::kCounted, std::memory_order_relaxed);
  detour->what = what;
  detour->own = t_cache;
  t_cache = &detour->head;
  return true;
}

bool end_count(Counts& counts) noexcept {
  Detour* const detour = present_detour();
  if (detour == nullptr) return false;
  counts = detour->counts;
  t_cache = detour->own;
  const Uncounted uncounted;
  deallocate(detour);
  return true;
}

}  // namespace freehold::alloc
