// SPDX-License-Identifier: MIT
// A pool that knows its objects: how many live, how many there were, each of them in turn; those that are left end with it.
//
//   freehold::TrackedPool<Session> sessions(10'000, {.name = "sessions"});
//   auto session = sessions.make(socket);
//   sessions.for_each([](Session& each) { each.ping(); });
//   sessions.destroy_all();
//
// Each slot has a link to the one before and behind it among the living, in a list under one lock.
//   Invariant: the list, a ring through ring_, holds the objects whose construction has ended and whose end has not begun;
//   live_ is their number.
//
// Threads: any; construction and destruction are one thread's. Cost: a lock for each object's begin and end (ObjectPool has
// none), and 16 bytes a slot. Errors: those of ObjectPool.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "freehold/base/check.hpp"
#include "freehold/base/undo.hpp"
#include "freehold/pool/object_pool.hpp"
#include "freehold/sync/lock.hpp"

namespace freehold::pool {

/// A snapshot of a TrackedPool.
struct PoolStats {
  const char* name = "";      ///< as the options gave it
  std::size_t capacity = 0;   ///< the most objects that there can be
  std::size_t live = 0;       ///< objects now
  std::size_t peak_live = 0;  ///< the most objects that were alive at once, exactly
  std::uint64_t made = 0;     ///< objects that were ever made
  std::uint64_t full = 0;     ///< requests that found no slot
};

/// A pool that knows its objects.
/// @tparam T  the type of the objects
/// @tparam P  the pool of slots below
/// Threads: any, for all but construction and destruction. Cost: a lock for each object's begin and end.
template <class T, SlotPool P = NativePool<Best>>
class TrackedPool {
  struct Links {
    Links* before = this;
    Links* behind = this;
  };
  struct Node {
    Links links;
    alignas(T) std::byte room[sizeof(T)];
    [[nodiscard]] T* object() noexcept { return std::launder(reinterpret_cast<T*>(room)); }
  };

 public:
  /// The deleter of a Handle: ends the object and gives its slot back.
  using Release = PoolRelease<TrackedPool, T>;
  /// Null, or the owner of one object; converts into PoolPtr<Base>. Must end before the pool does, and before destroy_all().
  using Handle = std::unique_ptr<T, Release>;

  /// A pool whose memory is there from the beginning.
  /// @param max_objects  as of ObjectPool
  /// @param options      name, and what happens when it is full
  /// Errors: std::bad_alloc.
  explicit TrackedPool(std::size_t max_objects, const ObjectPoolOptions& options = {})
      : nodes_(max_objects, {.name = options.name}), options_(options) {}
  TrackedPool(const TrackedPool&) = delete;
  TrackedPool& operator=(const TrackedPool&) = delete;
  /// Ends the objects that are left, too.
  ~TrackedPool() { destroy_all(); }

  /// A new object T(args...).
  /// @param args  the constructor's arguments
  /// @return its handle; null, or std::bad_alloc, as the options say, when there is no slot.
  /// Errors: what T's constructor throws.
  template <class... Args>
  [[nodiscard]] Handle make(Args&&... args) {
    return Handle(construct(std::forward<Args>(args)...), Release(*this));
  }
  /// The same without a handle: destroy(), destroy_all() or the pool's end ends it.
  /// @param args  the constructor's arguments
  template <class... Args>
  [[nodiscard]] T* construct(Args&&... args) {
    Node* const node = nodes_.construct();
    if (node == nullptr) [[unlikely]] {
      {
        const sync::Guard guard(lock_);
        ++full_;
      }
      if (options_.when_full == WhenFull::kThrow) base::out_of_memory();
      return nullptr;
    }
    base::Undo undo([&] { nodes_.destroy(node); });
    T* const object = ::new (static_cast<void*>(node->room)) T(std::forward<Args>(args)...);
    undo.dismiss();
    const sync::Guard guard(lock_);
    enlist(node->links);
    return object;
  }
  /// Ends an object.
  /// @param object  one of this pool, or null
  void destroy(T* object) noexcept {
    static_assert(std::is_nothrow_destructible_v<T>, "a handle's end cannot throw");
    if (object == nullptr) return;
    Node* const node = node_of(object);
    {
      const sync::Guard guard(lock_);
      delist(node->links);
    }
    std::destroy_at(object);
    nodes_.destroy(node);
  }
  /// Ends all objects, the newest first. Their destructors may make and destroy objects of the pool: those end, too. Pre: no
  /// thread uses the objects or has a handle to one. @return their number.
  std::size_t destroy_all() noexcept {
    std::size_t n = 0;
    for (T* object = newest(); object != nullptr; object = newest(), ++n) destroy(object);
    return n;
  }

  /// Calls visit(T&) for each object, the oldest first. Pre: no object begins or ends during the call.
  /// @param visit  must make and destroy no object of the pool
  template <class F>
  void for_each(F&& visit) {
    const sync::Guard guard(lock_);
    for (Links* each = ring_.behind; each != &ring_; each = each->behind) visit(*reinterpret_cast<Node*>(each)->object());
  }

  /// How many objects there are now.
  [[nodiscard]] std::size_t live() const noexcept {
    const sync::Guard guard(lock_);
    return live_;
  }
  /// A snapshot at one instant.
  [[nodiscard]] PoolStats stats() const noexcept {
    const sync::Guard guard(lock_);
    return {options_.name, nodes_.capacity(), live_, most_, made_, full_};
  }
  /// The name that the options gave.
  [[nodiscard]] const char* name() const noexcept { return options_.name; }
  /// The most objects that there can be.
  [[nodiscard]] std::size_t capacity() const noexcept { return nodes_.capacity(); }

 private:
  [[nodiscard]] static Node* node_of(T* object) noexcept {
    auto* const room = reinterpret_cast<std::byte*>(const_cast<std::remove_cv_t<T>*>(object));
    static_assert(std::is_standard_layout_v<Node>);
    return reinterpret_cast<Node*>(room - offsetof(Node, room));
  }
  void enlist(Links& node) noexcept {
    node.before = ring_.before;
    node.behind = &ring_;
    ring_.before->behind = &node;
    ring_.before = &node;
    ++made_;
    if (++live_ > most_) most_ = live_;
  }
  void delist(Links& node) noexcept {
    node.before->behind = node.behind;
    node.behind->before = node.before;
    --live_;
  }
  [[nodiscard]] T* newest() noexcept {
    const sync::Guard guard(lock_);
    return ring_.before == &ring_ ? nullptr : reinterpret_cast<Node*>(ring_.before)->object();
  }

  ObjectPool<Node, P> nodes_;
  ObjectPoolOptions options_;
  mutable sync::Mutex<sync::NativeAtomics> lock_;  // over all below
  Links ring_;
  std::size_t live_ = 0, most_ = 0;
  std::uint64_t made_ = 0, full_ = 0;
};

}  // namespace freehold::pool

namespace freehold {
using pool::TrackedPool;
}  // namespace freehold
