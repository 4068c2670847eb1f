// SPDX-License-Identifier: MIT
// Scopes: while a thread is in one, its calls come by (detour.hpp) and get their blocks from the scope's heap. A block of a
// heap lies where the span has no class, so each free of one takes the slow path, which asks HeapMap whose it is: in any
// thread, in a scope or not.
//
// The heap's own calls to the engine, for slabs, are none of the program's: the thread's word leads past all detours
// until they return. No lock of the engine is held, and the thread is not inside the gate: fork locks heaps before it closes
// that.
#include "freehold/alloc/scope/scope.hpp"

#include <algorithm>
#include <cstring>

#include "freehold/alloc/engine_state.hpp"
#include "freehold/alloc/scope/detour.hpp"
#include "freehold/alloc/scope/heap_map.hpp"
#include "freehold/check/call_stacks.hpp"

namespace freehold::alloc {

using namespace engine;

namespace {

using Map = HeapMap<ScopedHeap, sync::NativeAtomics>;

constinit Map g_heaps;
// Threads without a cache of their own that are amid a call of some heap.
constinit std::atomic<std::uint32_t> g_others_in_heaps{0};
constinit std::atomic<HeapOwner*> g_owners{nullptr};

// Lives while a thread without a cache is amid a call of a heap. fork finds it as it finds one amid a slow path.
class OtherInHeap {
 public:
  OtherInHeap() noexcept { g_others_in_heaps.fetch_add(1, std::memory_order_relaxed); }  // relaxed: fenced
  ~OtherInHeap() { g_others_in_heaps.fetch_sub(1, std::memory_order_release); }
  OtherInHeap(const OtherInHeap&) = delete;
  OtherInHeap& operator=(const OtherInHeap&) = delete;

 private:
  Reading reading_;
};

// Checked mode. A call by a heap amid another one is of no heap.
template <class F>
[[gnu::noinline]] bool with_checked_heap_of(const void* block, const F& f) noexcept {
  const auto call = [](void* context, ScopedHeap& heap) noexcept { (*static_cast<const F*>(context))(heap); };
  if (t_fork.inside != 0 || !is_checked()) return false;
  const Reading reading;
  for (const HeapOwner* owner = g_owners.load(std::memory_order_acquire); owner != nullptr; owner = owner->next)
    if (owner->with_heap_of(block, call, const_cast<F*>(&f))) return true;
  return false;
}

// Calls f(heap) for the heap of a block, which does not end before f returns. False: no heap has it.
// Pre: the thread's word leads to no detour.
template <class F>
[[gnu::always_inline]] inline bool with_heap_of(const void* block, const F& f) noexcept {
  const Map::Entry* const entry = g_heaps.find(block);
  if (entry == nullptr) return with_checked_heap_of(block, f);
  if (NativeCache* const cache = t_cache; cache->id != 0) [[likely]]
    return Map::with_heap(cache->heap_in_use, *entry, [] { g_gate.fence(); }, f);
  const OtherInHeap in_heap;
  g_gate.fence();
  ScopedHeap* const heap = Map::heap_of(*entry);
  if (heap != nullptr) f(*heap);
  return heap != nullptr;
}

}  // namespace

void* engine::allocate_scoped(Detour& detour, std::size_t bytes, std::size_t alignment) noexcept {
  ScopedHeap& heap = *detour.heap;
  NativeCache& own = *detour.own;
  if (own.id == 0 || profile::mean() != 0) [[unlikely]] {
    const Uncounted uncounted;
    return allocate_in_heap(heap, bytes, alignment);
  }
  t_cache = &own;
  ScopedHeap* const former = own.heap_in_use.load(std::memory_order_relaxed);
  own.heap_in_use.store(&heap, std::memory_order_relaxed);  // relaxed: for is_amid_call(), of this thread
  void* const block = heap.calls->allocate(heap, bytes, std::max(alignment, kAlignment));
  own.heap_in_use.store(former, std::memory_order_release);
  detour.own = t_cache;
  t_cache = &detour.head;
  return block != nullptr ? block : out_of_memory();
}

void* engine::allocate_in_heap(ScopedHeap& heap, std::size_t bytes, std::size_t alignment) noexcept {
  const auto allocate = [&] { return heap.calls->allocate(heap, bytes, std::max(alignment, kAlignment)); };
  const bool is_sampled = is_sample_due(bytes);
  const std::uint32_t stack = is_sampled ? check::note_call_stack() : 0;
  void* block;
  if (NativeCache* const cache = t_cache; cache->id != 0) [[likely]] {
    ScopedHeap* const former = cache->heap_in_use.load(std::memory_order_relaxed);
    cache->heap_in_use.store(&heap, std::memory_order_relaxed);  // relaxed: for is_amid_call(), of this thread
    block = allocate();
    cache->heap_in_use.store(former, std::memory_order_release);
  } else {
    const OtherInHeap in_heap;
    block = allocate();
  }
  if (block == nullptr) return out_of_memory();
  if (is_sampled) profile::add(block, bytes, heap.calls->usable_size(heap, block), stack);
  return block;
}

bool engine::is_in_heap(const void* block) noexcept {
  const Map::Entry* const entry = g_heaps.find(block);
  if (entry == nullptr) return with_checked_heap_of(block, [](const ScopedHeap&) noexcept {});
  return Map::heap_of(*entry) != nullptr;
}

bool engine::free_in_heap(void* block) noexcept {
  const Map::Entry* const entry = g_heaps.find(block);
  NativeCache* const word = t_cache;
  Detour* const detour = detour_of(word);
  NativeCache* const own = detour != nullptr && !detour->some_count ? detour->own : word;
  if (entry != nullptr && own->id != 0 && !profile::was_started()) [[likely]] {
    t_cache = own;
    const bool found = Map::with_heap(
        own->heap_in_use, *entry, [] { g_gate.fence(); },
        [block](ScopedHeap& heap) { heap.calls->deallocate(heap, block); });
    if (own != word) {
      detour->own = t_cache;
      t_cache = word;
    }
    return found;
  }
  if (!is_in_heap(block)) return false;
  note_free(present_detour(), block);
  const Uncounted uncounted;
  if (profile::was_started()) (void)profile::forget(block);
  return with_heap_of(block, [block](ScopedHeap& heap) { heap.calls->deallocate(heap, block); });
}

std::size_t engine::usable_size_in_heap(const void* block) noexcept {
  std::size_t bytes = 0;
  const Uncounted uncounted;
  (void)with_heap_of(block, [&](const ScopedHeap& heap) { bytes = heap.calls->usable_size(heap, block); });
  return bytes;
}

void* engine::reallocate_in_heap(void* block, std::size_t bytes) noexcept {
  std::size_t old = 0;
  bool stays = false;
  {
    const Uncounted uncounted;
    (void)with_heap_of(block, [&](const ScopedHeap& heap) {
      old = heap.calls->usable_size(heap, block);
      stays = heap.calls->may_stay(heap, block, bytes);
    });
  }
  if (old == 0) return out_of_memory();  // after a report
  if (!stays) return move_block(block, old, bytes);
  if (Detour* const detour = present_detour(); detour != nullptr)
    for_each_count(*detour, [old](Detour& each) {
      each.note_free(old);
      each.note_allocation(old);
    });
  return block;
}

void* engine::move_block(void* block, std::size_t old, std::size_t bytes) noexcept {
  void* const fresh = allocate(bytes);
  if (fresh == nullptr) return bytes <= old ? block : nullptr;
  std::memcpy(fresh, block, std::min(old, bytes));
  deallocate(block);
  return fresh;
}

std::size_t engine::trim_heaps() noexcept {
  std::size_t bytes = 0;
  for (const HeapOwner* owner = g_owners.load(std::memory_order_acquire); owner != nullptr; owner = owner->next)
    bytes += owner->trim_all();
  return bytes;
}

void engine::scopes_after_fork_in_child() noexcept { g_others_in_heaps.store(0, std::memory_order_relaxed); }

namespace {

[[nodiscard]] bool enter_scope(ScopedHeap* heap) noexcept {
  Detour* const detour = begin_detour();
  if (detour == nullptr) return false;
  detour->heap = heap;
  return true;
}
void leave_scope() noexcept {
  if (Detour* const detour = present_detour(); detour != nullptr && !detour->counts) end_detour(*detour);
}
[[nodiscard]] ScopedHeap* current_heap() noexcept {
  const Detour* const detour = present_detour();
  return detour != nullptr ? detour->heap : nullptr;
}
void add_owner(HeapOwner& owner) noexcept {
  owner.next = g_owners.load(std::memory_order_relaxed);
  while (!g_owners.compare_exchange_weak(owner.next, &owner, std::memory_order_release, std::memory_order_relaxed)) continue;
}
[[nodiscard]] bool put(const void* address, ScopedHeap& heap) noexcept {
  Map::Entry* const entry = g_heaps.make(address);
  if (entry != nullptr) Map::put(*entry, &heap);
  return entry != nullptr;
}
void remove(const void* address) noexcept { Map::put(*g_heaps.find(address), nullptr); }

void wait_for_users(const ScopedHeap& heap) noexcept {
  const Reading reading;  // find() takes a lock
  const Uncounted uncounted;
  const NativeCache* const mine = present_cache();  // it came during a call of the thread's own
  (void)g_gate.fence_others();
  sync::wait_until<sync::NativeAtomics>([&] {
    NativeCache* found;
    return g_others_in_heaps.load(std::memory_order_acquire) == 0 &&
           g_core.registry().find(
               [&](const NativeCache& cache) { return &cache != mine && Map::is_used(cache.heap_in_use, &heap); }, &found,
               1) == 0;
  });
}

[[nodiscard]] bool is_amid_call() noexcept {
  const NativeCache* const cache = present_cache();
  return t_fork.inside != 0 || (cache != nullptr && cache->heap_in_use.load(std::memory_order_relaxed) != nullptr);
}

}  // namespace

void* allocate_slab(std::size_t bytes, std::size_t alignment) noexcept {
  const Uncounted uncounted;
  return allocate_aligned(alignment, bytes);
}
void deallocate_slab(void* slab) noexcept {
  const Uncounted uncounted;
  deallocate(slab);
}
void* allocate_checked_block(Family family, std::size_t bytes, std::size_t alignment) noexcept {
  const Uncounted uncounted;
  return allocate_as(family, bytes, alignment);
}
std::size_t slab_bytes(const void* slab) noexcept { return usable_size(slab); }

constinit const ScopeEngine kScopeEngine{enter_scope, leave_scope, current_heap,   add_owner,
                                         put,         remove,      wait_for_users, is_amid_call};

}  // namespace freehold::alloc
