// SPDX-License-Identifier: MIT
#include "freehold/heap/registry.hpp"

#include <pthread.h>

#include <atomic>

#include "freehold/alloc/engine.hpp"
#include "freehold/base/member_offset.hpp"
#include "freehold/heap/block_owners.hpp"
#include "freehold/sync/live_list.hpp"
#include "freehold/sync/lock.hpp"

namespace freehold::heap {

struct Registry {
  sync::LiveListDirectory directory;
  LiveHeapLayout layout;
  sync::ChangeCount<sync::NativeAtomics> changes;
  sync::Mutex<sync::NativeAtomics> lock;
  RegisteredHeap* heaps = nullptr;
  bool knows_of_fork = false;
  // The engine whose scopes use heaps. Relaxed: the thread that asks set it before it had a scope.
  std::atomic<const alloc::ScopeEngine*> scopes{nullptr};
  alloc::HeapOwner owner{};

  // A handler of signals forks amid a call of a scope's heap, whose locks the thread may hold: it goes on in both processes.
  [[nodiscard]] bool is_amid_call() const noexcept {
    const alloc::ScopeEngine* const engine = scopes.load(std::memory_order_relaxed);
    return engine != nullptr && engine->is_amid_call();
  }
  void before_fork() noexcept {
    if (is_amid_call()) return;
    lock.lock();
    for (RegisteredHeap* place = heaps; place != nullptr; place = place->next_) place->calls_->before_fork(place->heap_);
    OwnedBlocks::before_fork();
  }
  void after_fork() noexcept {
    if (is_amid_call()) return;
    OwnedBlocks::after_fork();
    for (RegisteredHeap* place = heaps; place != nullptr; place = place->next_) place->calls_->after_fork(place->heap_);
    lock.unlock();
  }
  void add(RegisteredHeap& place) noexcept {
    if (layout.calls == 0) describe(place);
    const sync::Change change(changes);
    place.next_ = heaps;
    if (heaps != nullptr) heaps->previous_ = &place;
    heaps = &place;
  }
  void remove(RegisteredHeap& place) noexcept {
    const sync::Change change(changes);
    (place.previous_ != nullptr ? place.previous_->next_ : heaps) = place.next_;
    if (place.next_ != nullptr) place.next_->previous_ = place.previous_;
  }
  // Before the lock: the last block of a heap that has ended takes it.
  void collect() const noexcept {
    if (const alloc::ScopeEngine* const engine = scopes.load(std::memory_order_relaxed); engine != nullptr)
      engine->collect(nullptr);
  }
  void report(base::Callback<void(const HeapStats&)> to) {
    collect();
    const sync::Guard guard(lock);
    for (RegisteredHeap* place = heaps; place != nullptr; place = place->next_) to(place->calls_->stats(place->heap_));
  }
  std::size_t trim_all() noexcept {
    collect();
    const sync::Guard guard(lock);
    std::size_t bytes = 0;
    for (RegisteredHeap* place = heaps; place != nullptr; place = place->next_) bytes += place->calls_->trim(place->heap_);
    return bytes;
  }
  bool with_heap_of(const void* block, void (*f)(void*, alloc::ScopedHeap&) noexcept, void* context) noexcept {
    const sync::Guard guard(lock);
    void* const heap = OwnedBlocks::heap_of(block);
    if (heap == nullptr) return false;
    alloc::ScopedHeap* scoped = heap == &g_orphan_heap ? &g_orphan_heap : nullptr;
    for (RegisteredHeap* place = heaps; place != nullptr; place = place->next_)
      if (place->heap_ == heap) scoped = place->scoped_;
    if (scoped != nullptr) f(context, *scoped);
    return scoped != nullptr;
  }
  void begin_scopes(const alloc::ScopeEngine& engine, const RegisteredHeap::Calls& ended) noexcept;
  void learn_of_fork() noexcept;
  // Called with the first heap: heaps of its type can be read from outside.
  void describe(const RegisteredHeap& place) noexcept {
    static_assert(sizeof(LiveHeap) == 3 * sizeof(void*));
    const auto address = [](const void* of) { return reinterpret_cast<std::uintptr_t>(of); };
    place.calls_->add_to(place.heap_, layout);
    layout.calls = address(place.calls_);
    directory.kind = sync::LiveList::kHeaps;
    directory.first = address(&heaps);
    directory.changes = address(&changes.number());
    directory.layout = address(&layout);
    directory.layout_bytes = sizeof layout;
    directory.next = base::distance(&place, &place.next_);
    directory.data = base::distance(&place, &place.heap_);
    directory.data_bytes = sizeof(LiveHeap);
    sync::publish(directory);
  }
};

namespace {
constinit Registry g_registry{};
}  // namespace

// Handlers that are registered later run earlier before a fork: the engine's locks come after ours, so its handlers must be
// there when ours are registered. pthread_atfork allocates, perhaps by an engine that is preloaded: no lock is held.
void Registry::learn_of_fork() noexcept {
  {
    const sync::Guard guard(lock);
    if (knows_of_fork) return;
    knows_of_fork = true;
  }
  alloc::deallocate(alloc::allocate(1));
  pthread_atfork([] { g_registry.before_fork(); }, [] { g_registry.after_fork(); }, [] { g_registry.after_fork(); });
}

void Registry::begin_scopes(const alloc::ScopeEngine& engine, const RegisteredHeap::Calls& ended) noexcept {
  const sync::Guard guard(lock);
  if (scopes.load(std::memory_order_relaxed) != nullptr) return;
  ended.add_to(nullptr, layout);
  layout.ended_calls = reinterpret_cast<std::uintptr_t>(&ended);  // of no heap yet: a reader may miss it
  scopes.store(&engine, std::memory_order_relaxed);
  owner.trim_all = []() noexcept { return g_registry.trim_all(); };
  owner.with_heap_of = [](const void* block, void (*f)(void*, alloc::ScopedHeap&) noexcept, void* context) noexcept {
    return g_registry.with_heap_of(block, f, context);
  };
  engine.add_owner(owner);
}

RegisteredHeap::RegisteredHeap(void* heap, const char* name, const Calls& calls) noexcept
    : registry_(g_registry), heap_(heap), name_(name), calls_(&calls) {
  registry_.learn_of_fork();
  const sync::Guard guard(registry_.lock);
  registry_.add(*this);
}
RegisteredHeap::RegisteredHeap(Within, void* heap, const char* name, const Calls& calls) noexcept
    : registry_(g_registry), heap_(heap), name_(name), calls_(&calls) {
  registry_.add(*this);
}

void RegisteredHeap::begin_scopes(const alloc::ScopeEngine& engine, const Calls& ended) noexcept {
  registry_.begin_scopes(engine, ended);
}
void RegisteredHeap::end(void (*at_end)(void*) noexcept, void* context) noexcept {
  const sync::Guard guard(registry_.lock);
  registry_.remove(*this);
  at_end(context);
}

void report_heaps(base::Callback<void(const HeapStats&)> report) { g_registry.report(report); }

}  // namespace freehold::heap
