// SPDX-License-Identifier: MIT
// Scopes: while a thread is in one, its calls come by (detour.hpp) and get their blocks from the scope's heap. A block of a
// heap lies where the span has no class, or that of all heaps: then the thread's array takes it, and when that is full
// HeapMap says whose each is. In any thread, in a scope or not.
//
// The heap's own calls to the engine, for slabs, are none of the program's: the thread's word leads past all detours
// until they return. No lock of the engine is held, and the thread is not inside the gate: fork locks heaps before it closes
// that.
#include "freehold/alloc/scope/scope.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "freehold/alloc/engine_state.hpp"
#include "freehold/alloc/scope/detour.hpp"
#include "freehold/alloc/scope/heap_map.hpp"
#include "freehold/check/call_stacks.hpp"
#include "freehold/os/text_line.hpp"

namespace freehold::alloc {

using namespace engine;

namespace {

using Map = HeapMap<ScopedHeap, sync::NativeAtomics>;

constexpr std::size_t kHeapFrees = HeapFrees<sync::NativeAtomics>::kEntries;

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

// Blocks of dead threads' arrays, which any thread may give to their heaps.
struct LeftBlock {
  LeftBlock* next;
};
constinit DeferredList<sync::NativeAtomics, LeftBlock, &LeftBlock::next> g_left_blocks;

// n freed blocks that lie in slabs. Pre: the thread's word leads to no detour.
void give_to_heaps(void** blocks, std::size_t n) noexcept {
  const base::KeepErrno keep;
  if (profile::was_started())
    for (std::size_t i = 0; i < n; ++i) (void)profile::forget(blocks[i]);
  alloc::give_to_heaps(
      blocks, n, [](const void* block, const auto& give) { return with_heap_of(block, give); },
      [](const void* block) { g_core.blocks().report(block); });
}

// The array of a cache or a detour is empty afterwards. Pre: as before.
void give_heap_frees(NativeCache& cache) noexcept {
  void* blocks[kHeapFrees];
  void**& top = cache.top[NativeCache::kOfHeaps];
  const std::size_t n =
      cache.heap_frees.take_all(static_cast<std::size_t>(top - first_heap_free(cache)), blocks, [] { g_gate.fence(); });
  top = first_heap_free(cache);
  give_to_heaps(blocks, n);
}

// A slot of class c. Null: the limit or memory.
[[nodiscard]] void* refill_scoped(Detour& detour, ScopedHeap& heap, SizeClass c) noexcept {
  void* blocks[kHeapFrees];
  std::size_t others = 0;
  if (NativeCache& head = detour.head; has_heap_frees(head)) {
    void** const first = first_heap_free(head);
    const auto n = static_cast<std::size_t>(std::exchange(head.top[NativeCache::kOfHeaps], first) - first);
    if (profile::was_started())
      others = head.heap_frees.take_all(n, blocks, [] { g_gate.fence(); });
    else
      head.heap_frees.take_by([] { g_gate.fence(); },
                              [&] { others = heap.calls->sort(heap, first, n, detour.slots, blocks); });
  }
  void* const block = detour.slots.refill(heap, c.index(), Classes::slot_bytes(c));
  if (others != 0) give_to_heaps(blocks, others);
  return block;
}

}  // namespace

void engine::empty_detour(Detour& detour) noexcept {
  const Uncounted uncounted;
  if (has_heap_frees(detour.head)) give_heap_frees(detour.head);
  detour.slots.empty([](void** slots, std::size_t n) { give_to_heaps(slots, n); });
}

void* engine::allocate_scoped(Detour& detour, std::size_t bytes, std::size_t alignment) noexcept {
  if (detour.heap.load(std::memory_order_relaxed) == nullptr) return nullptr;
  const Uncounted uncounted;
  NativeCache* const cache = t_cache->id != 0 ? t_cache : nullptr;
  const bool is_sampled = is_sample_due(bytes);
  const std::uint32_t stack = is_sampled ? check::note_call_stack() : 0;
  const auto allocate = [&](ScopedHeap& heap) {
    if (bytes <= Classes::kTableBytes && alignment <= kAlignment && detour.keeps && heap.is_kept && profile::mean() == 0)
      return refill_scoped(detour, heap, Classes::class_of(std::max<std::size_t>(bytes, 1)));
    const profile::OwnMemory slabs;  // hold the block, whose sample stands for it
    void* const made = heap.calls->allocate(heap, bytes, std::max(alignment, kAlignment));
    if (is_sampled && made != nullptr) profile::add(made, bytes, bytes, profile::origin_in_heap(stack, heap.name));
    return made;
  };
  void* block = nullptr;
  if (cache != nullptr) [[likely]] {
    if (!Map::with_heap(
            cache->heap_in_use, detour.heap, [] { g_gate.fence(); }, [&](ScopedHeap& heap) { block = allocate(heap); }))
      return nullptr;
  } else {
    const OtherInHeap in_heap;
    g_gate.fence();
    ScopedHeap* const heap = detour.heap.load(std::memory_order_relaxed);
    if (heap == nullptr) return nullptr;
    block = allocate(*heap);
  }
  return block != nullptr ? block : out_of_memory();
}

bool engine::is_of_heap(const void* block) noexcept {
  const std::size_t span = (reinterpret_cast<std::uintptr_t>(block) - g_base) >> NativeConfig::kSpanShift;
  return span < span_count() && g_span_classes[span].load(std::memory_order_relaxed) == NativeCache::kOfHeaps.index();
}

void engine::free_of_heap(void* block) noexcept {
  if (t_cache == &g_modes.no_cache) (void)own_cache();
  NativeCache& word = *t_cache;
  const Detour* const detour = detour_of(&word);
  const bool is_own = detour != nullptr || word.id != 0;  // else a mode, which is all threads'
  const bool keeps = (detour != nullptr ? detour->keeps : is_own) && may_keep_heap_frees() && !profile::was_started();
  if (has_heap_frees(word)) {
    const Uncounted uncounted;
    give_heap_frees(word);
  }
  if (is_own) [[likely]]
    keep_heap_frees(word, keeps);
  if (keeps) [[likely]] {
    *word.top[NativeCache::kOfHeaps]++ = block;
  } else if (!free_in_heap(block)) {
    g_core.blocks().report(block);
  }
}

void engine::end_scopes_of(NativeCache& cache) noexcept {
  if (has_heap_frees(cache)) give_heap_frees(cache);
  keep_heap_frees(cache, false);
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

void engine::scopes_after_fork_in_child() noexcept {
  g_others_in_heaps.store(0, std::memory_order_relaxed);
  for (NativeCache* cache = g_core.registry().first(); cache != nullptr; cache = cache->next) cache->heap_frees.reset();
  for_each_detour([](Detour& each) {
    each.head.heap_frees.reset();
    if (each.thread.load(std::memory_order_relaxed) != &t_cache) each.thread.store(nullptr, std::memory_order_relaxed);
  });
}

// The cache's thread is gone, or gave all back before.
void EngineConfig::note_detached(void* cache) noexcept {
  auto& of = *static_cast<NativeCache*>(cache);
  release_detours(std::exchange(of.spare_detour, nullptr));
  void* blocks[kHeapFrees];
  const std::size_t n = of.heap_frees.take_all(kHeapFrees, blocks, [] { g_gate.fence(); });
  for (std::size_t i = 0; i < n; ++i) g_left_blocks.push(static_cast<LeftBlock*>(blocks[i]));
}

namespace {

[[nodiscard]] bool enter_scope(ScopedHeap* heap) noexcept {
  Detour* const detour = begin_detour(heap);
  if (detour == nullptr) [[unlikely]]
    return false;
  const bool checked = is_not_yet_or_checked() && is_checked();
  if (checked) [[unlikely]]
    detour->stack = check::note_call_stack();
  detour->keep(detour->cache != nullptr && !detour->some_count && !checked);
  return true;
}
void leave_scope() noexcept {
  if (Detour* const detour = detour_of(t_cache); detour != nullptr && !detour->counts) end_detour(*detour);
}
[[nodiscard]] ScopedHeap* current_heap() noexcept { return heap_of(detour_of(t_cache)); }
void add_owner(HeapOwner& owner) noexcept {
  owner.next = g_owners.load(std::memory_order_relaxed);
  while (!g_owners.compare_exchange_weak(owner.next, &owner, std::memory_order_release, std::memory_order_relaxed)) continue;
}
// The slab of an engine beside this one is no span.
void set_class(const void* address, bool is_of_heap) noexcept {
  const std::size_t span = (reinterpret_cast<std::uintptr_t>(address) - g_base) >> NativeConfig::kSpanShift;
  if (span < span_count()) g_core.arena().slots().set_of_heap(static_cast<SpanIndex>(span), is_of_heap);
}
[[nodiscard]] bool put(const void* address, bool is_slab, ScopedHeap& heap) noexcept {
  Map::Entry* const entry = g_heaps.make(address);
  if (entry == nullptr) return false;
  Map::put(*entry, &heap);
  set_class(address, is_slab && heap.is_kept);
  return true;
}
void remove(const void* address) noexcept {
  set_class(address, false);
  Map::put(*g_heaps.find(address), nullptr);
}

// Some freed blocks of a heap, or of every one, out of other threads' arrays.
[[nodiscard]] std::size_t take_from_others(const ScopedHeap* heap, void** blocks, std::size_t most) noexcept {
  const Reading reading;
  const sync::Guard guard(g_core.registry().lock());
  Detour* const newest = g_detours.load(std::memory_order_acquire);
  const auto arrays = [newest](const auto& f) {
    for (NativeCache* cache = g_core.registry().first(); cache != nullptr; cache = cache->next) f(cache->heap_frees);
    for (Detour* each = newest; each != nullptr; each = each->next) f(each->head.heap_frees);
  };
  const auto is_wanted = [heap](const void* block) {
    const ScopedHeap* const of = Map::heap_of(*g_heaps.find(block));
    return heap != nullptr ? of == heap : of != nullptr;
  };
  const auto fence_others = [] { return may_keep_heap_frees() && g_gate.fence_others(); };
  return take_from_all(arrays, fence_others, is_wanted, blocks, most);
}
[[nodiscard]] bool is_mine(const Detour& detour) noexcept {
  return detour.thread.load(std::memory_order_relaxed) == &t_cache;
}

void collect(ScopedHeap* heap) noexcept {
  const Uncounted uncounted;
  for (LeftBlock *block = g_left_blocks.take_all(), *next = nullptr; block != nullptr; block = next) {
    next = block->next;
    void* left = block;
    give_to_heaps(&left, 1);
  }
  if (NativeCache* const cache = present_cache(); cache != nullptr && has_heap_frees(*cache)) give_heap_frees(*cache);
  for_each_detour([heap](Detour& each) {
    if (is_mine(each))
      return heap == nullptr || each.heap.load(std::memory_order_relaxed) == heap ? empty_detour(each) : void();
    // In a child of fork: of a thread that was in its scope.
    const void* nobody = nullptr;
    if (each.heap.load(std::memory_order_relaxed) == nullptr || !each.thread.compare_exchange_strong(nobody, &t_cache))
      return;
    empty_detour(each);
    each.heap.store(nullptr, std::memory_order_relaxed);
    each.thread.store(nullptr, std::memory_order_release);
  });
  constexpr std::size_t kAtOnce = 4 * kHeapFrees;
  void* blocks[kAtOnce];
  for (std::size_t n = kAtOnce; n == kAtOnce;) {
    n = take_from_others(heap, blocks, kAtOnce);
    give_to_heaps(blocks, n);
  }
}

// Slots that other threads pop at this moment may be counted or not: a figure, for which the tops are read as they are, by
// no atomic load, of which Clang would tell ThreadSanitizer.
[[gnu::no_sanitize_thread]] void subtract_kept(const ScopedHeap& heap, std::uint64_t& blocks,
                                               std::uint64_t& bytes) noexcept {
  for (Detour* each = g_detours.load(std::memory_order_acquire); each != nullptr; each = each->next) {
    if (each->heap.load(std::memory_order_relaxed) != &heap) continue;
    for (std::uint32_t c = 1; c < ScopeSlots::kClasses; ++c) {
      void** const volatile& top = each->slots.tops[c];
      const auto n = static_cast<std::uint64_t>(top - each->slots.first(c));
      blocks -= std::min(n, blocks);
      bytes -= std::min(n * Classes::slot_bytes(SizeClass{c}), bytes);
    }
  }
}

void end(ScopedHeap& heap) noexcept {
  collect(&heap);
  for_each_detour([&heap](Detour& each) {
    ScopedHeap* of = &heap;
    if (!each.heap.compare_exchange_strong(of, nullptr, std::memory_order_relaxed) || !is_checked()) return;
    static constexpr char kLine[] = "freehold: a private heap ends in a scope of it, which is of no heap from now on\n";
    os::write_to_standard_error(kLine, sizeof kLine - 1);
    check::detail_call_stack("the scope was entered:", each.stack);
  });
}

void wait_for_users(const ScopedHeap& heap) noexcept {
  const Reading reading;  // find() takes a lock
  const Uncounted uncounted;
  const NativeCache* const mine = present_cache();  // it came during a call of the thread's own
  g_gate.order_others();
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

constinit const ScopeEngine kScopeEngine{enter_scope,    leave_scope, current_heap,  add_owner, put,         remove,
                                         wait_for_users, collect,     subtract_kept, end,       is_amid_call};

}  // namespace freehold::alloc
