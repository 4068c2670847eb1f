// SPDX-License-Identifier: MIT
// The C interface of private heaps: heap.h on PrivateHeap and OwnerLockedHeap. Errors become errno here; nothing
// else is decided.
#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <new>

#include "freehold/alloc/engine.hpp"
#include "freehold/alloc/scope/scope.hpp"
#include "freehold/base/sized_struct.hpp"
#include "freehold/heap/owner_locked_heap.hpp"
#include "freehold/heap/private_heap.hpp"
#include "freehold/heap/scoped_heap.hpp"

#pragma GCC visibility push(default)
#include "freehold/heap_scope.h"
#pragma GCC visibility pop

// Null: the program's malloc is another one.
extern "C" [[gnu::weak]] const freehold::alloc::ScopeEngine* freehold_scope_engine() noexcept;

namespace alloc = freehold::alloc;
namespace base = freehold::base;
namespace heap = freehold::heap;

// One of the two heaps, by kind.
struct freehold_heap {
  explicit freehold_heap(const freehold_heap_options_t& o) noexcept : options(o), is_shared(o.kind == FREEHOLD_HEAP_SHARED) {
    is_shared ? static_cast<void>(::new (&shared) heap::PrivateHeap(translated()))
              : static_cast<void>(::new (&owner_locked) heap::OwnerLockedHeap(translated()));
  }
  freehold_heap(const freehold_heap&) = delete;
  freehold_heap& operator=(const freehold_heap&) = delete;
  ~freehold_heap() { is_shared ? shared.~BasicPrivateHeap() : owner_locked.~BasicOwnerLockedHeap(); }

  [[nodiscard]] heap::HeapOptions translated() noexcept {
    heap::HeapOptions t;
    if (options.name != nullptr) t.name = options.name;
    if (options.limit_bytes != 0 && options.limit_bytes != FREEHOLD_NO_LIMIT) t.limit_bytes = options.limit_bytes;
    if (options.on_limit != nullptr)
      t.on_limit = [this](std::size_t bytes) { return options.on_limit(options.on_limit_context, bytes) != 0; };
    if (options.waits != 0) t.when_limited = heap::WhenLimited::kWait;
    if (options.binds_node != 0) t.node = options.node;
    return t;
  }

  const freehold_heap_options_t options;
  const bool is_shared;
  void (*const give_back)(void*) noexcept = alloc::deallocate;  // to the engine of the library that made it
  union {
    heap::PrivateHeap shared;
    heap::OwnerLockedHeap owner_locked;
  };
};

namespace {

// Calls f with the heap that it is.
template <class F>
auto on(freehold_heap_t* h, const F& f) noexcept {
  return h->is_shared ? f(h->shared) : f(h->owner_locked);
}
[[nodiscard]] void* or_enomem(void* block) noexcept {
  if (block == nullptr) [[unlikely]]
    errno = ENOMEM;
  return block;
}
[[nodiscard]] std::nullptr_t invalid() noexcept {
  errno = EINVAL;
  return nullptr;
}

// Options from a program of this version, an older one (whose struct is shorter), or a younger one that says nothing that we
// do not know. Returns whether they can be met.
[[nodiscard]] bool read(const freehold_heap_options_t* from, freehold_heap_options_t& to) noexcept {
  constexpr std::size_t kFirstVersion = offsetof(freehold_heap_options_t, binds_node);
  if (from == nullptr) return true;
  if (from->size < kFirstVersion) return false;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(from);
  const std::size_t known = std::min(from->size, sizeof to);
  if (std::any_of(bytes + known, bytes + from->size, [](unsigned char byte) { return byte != 0; })) return false;
  std::memcpy(&to, from, known);
  if (to.binds_node != 0 && to.node < 0) return false;
  if (to.kind == FREEHOLD_HEAP_OWNER_LOCKED) return to.waits == 0;  // no other thread could give anything back
  return to.kind == FREEHOLD_HEAP_SHARED;
}

}  // namespace

extern "C" {

freehold_heap_t* freehold_heap_create(const freehold_heap_options_t* options) noexcept {
  freehold_heap_options_t known{};
  if (!read(options, known)) return invalid();
  void* const room = or_enomem(alloc::allocate_aligned(alignof(freehold_heap_t), sizeof(freehold_heap_t)));
  return room == nullptr ? nullptr : ::new (room) freehold_heap_t(known);
}
void freehold_heap_destroy(freehold_heap_t* h) noexcept {
  if (h == nullptr) return;
  const auto give_back = h->give_back;
  h->~freehold_heap();
  give_back(h);
}

void* freehold_heap_malloc(freehold_heap_t* h, size_t bytes) noexcept {
  return or_enomem(on(h, [=](auto& any) { return any.allocate(bytes); }));
}
void* freehold_heap_calloc(freehold_heap_t* h, size_t count, size_t bytes) noexcept {
  size_t product;
  if (__builtin_mul_overflow(count, bytes, &product)) return or_enomem(nullptr);
  void* const block = freehold_heap_malloc(h, product);
  return block == nullptr ? nullptr : std::memset(block, 0, product);
}
void* freehold_heap_aligned_alloc(freehold_heap_t* h, size_t alignment, size_t bytes) noexcept {
  if (!std::has_single_bit(alignment)) return invalid();
  return or_enomem(on(h, [=](auto& any) { return any.allocate(bytes, alignment); }));
}
void* freehold_heap_realloc(freehold_heap_t* h, void* block, size_t bytes) noexcept {
  return or_enomem(on(h, [=](auto& any) { return any.reallocate(block, bytes); }));
}
void freehold_heap_free(freehold_heap_t* h, void* block) noexcept {
  on(h, [=](auto& any) { any.deallocate(block); });
}
void freehold_heap_free_sized(freehold_heap_t* h, void* block, size_t bytes) noexcept {
  on(h, [=](auto& any) { any.deallocate(block, bytes); });
}
size_t freehold_heap_usable_size(freehold_heap_t* h, const void* block) noexcept {
  return block == nullptr ? 0 : on(h, [=](auto& any) { return any.usable_size(block); });
}

size_t freehold_heap_release_all(freehold_heap_t* h) noexcept {
  return on(h, [](auto& any) { return any.release_all(); });
}
void freehold_heap_end_all(freehold_heap_t* h) noexcept {
  (void)(h->is_shared ? h->shared.release_all(heap::HeldBlocks::kEnd) : h->owner_locked.release_all());
}
int freehold_heap_enter(freehold_heap_t* h) noexcept {
  const alloc::ScopeEngine* const engine = freehold_scope_engine != nullptr ? freehold_scope_engine() : nullptr;
  if (engine == nullptr || (h != nullptr && !h->is_shared)) {
    errno = engine == nullptr ? ENOTSUP : EINVAL;
    return -1;
  }
  alloc::ScopedHeap* const scoped = h != nullptr ? heap::scoped_heap(h->shared, *engine) : nullptr;
  if ((h == nullptr || scoped != nullptr) && engine->enter(scoped)) return 0;
  errno = ENOMEM;
  return -1;
}
void freehold_heap_leave() noexcept { freehold_scope_engine()->leave(); }
int freehold_heap_reserve(freehold_heap_t* h, size_t bytes) noexcept {
  if (on(h, [=](auto& any) { return any.reserve(bytes); })) return 0;
  errno = ENOMEM;
  return -1;
}
size_t freehold_heap_trim(freehold_heap_t* h) noexcept {
  return on(h, [](auto& any) { return any.trim(); });
}
int freehold_heap_stats(freehold_heap_t* h, freehold_heap_stats_t* out, size_t size) noexcept {
  const heap::HeapStats s = on(h, [](auto& any) { return any.stats(); });
  const freehold_heap_stats_t all{sizeof all,
                                  s.name,
                                  s.live_objects,
                                  s.live_bytes,
                                  s.used_bytes,
                                  s.held_bytes,
                                  s.limit_bytes.value_or(FREEHOLD_NO_LIMIT),
                                  s.slabs,
                                  s.large_blocks,
                                  s.conflicts,
                                  s.peak_bytes};
  return base::fill_sized(out, size, all) ? 0 : -1;
}

}  // extern "C"
