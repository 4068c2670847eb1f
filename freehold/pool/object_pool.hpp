// SPDX-License-Identifier: MIT
// Objects of one type from a pool: construction in a slot, a handle that destroys the object and gives the slot back.
//
//   freehold::ObjectPool<Order> orders(10'000);                  // at most ten thousand
//   if (auto order = orders.make(customer, amount)) ...          // null when all are in use; back when `order` ends
//
// Any pool of this folder can stand below; BestPool is the default. AddressSanitizer, memcheck and a checked build see
// objects as they see the pool's slots: they find a use after the handle's end, and a second release. A checked build also
// finds a pool that ends before its objects.
// Threads: any, for all but construction and destruction of the pool; a handle may end in another thread than it began in.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "freehold/base/check.hpp"
#include "freehold/base/undo.hpp"
#include "freehold/pool/best_pool.hpp"
#include "freehold/pool/concept.hpp"
#include "freehold/pool/named_pools.hpp"

namespace freehold::pool {

/// Chooses what make() does when there is no slot.
enum class WhenFull : std::uint8_t {
  kNull,   ///< returns a null handle
  kThrow,  ///< throws std::bad_alloc
};

/// The options of an ObjectPool beside the number of its objects.
struct ObjectPoolOptions {
  const char* name = "";                 ///< `freehold stats` lists pools that have one; must live as long as the pool
  WhenFull when_full = WhenFull::kNull;  ///< what make() does when there is no slot
};

// The deleter of a pool's handle: ends the object and gives its slot back.
template <class Pool, class T>
class PoolRelease {
 public:
  using object_type = T;

  PoolRelease() noexcept = default;
  explicit PoolRelease(Pool& pool) noexcept : pool_(&pool) {}
  void operator()(T* object) const noexcept { pool_->destroy(object); }
  [[nodiscard]] void* owner() const noexcept { return pool_; }
  static void end(void* pool, T* object) noexcept { static_cast<Pool*>(pool)->destroy(object); }

 private:
  Pool* pool_ = nullptr;
};

// How many objects of a pool live, if that is to be known.
template <bool kKnown>
class LiveCount {
 public:
  void on_construct() noexcept {}
  void on_destroy() noexcept {}
  [[nodiscard]] static constexpr bool any() noexcept { return false; }
};
template <>
class LiveCount<true> {
 public:
  // relaxed, all: the count is read at the pool's end, when no other thread uses the pool.
  void on_construct() noexcept { count_.fetch_add(1, std::memory_order_relaxed); }
  void on_destroy() noexcept { count_.fetch_sub(1, std::memory_order_relaxed); }
  [[nodiscard]] bool any() const noexcept { return count_.load(std::memory_order_relaxed) != 0; }

 private:
  std::atomic<std::size_t> count_{0};
};

/// A pool of objects of type T; T may be an array of one dimension, such as `char[4096]`.
/// @tparam T  the type of the objects
/// @tparam P  the pool of slots below
/// Threads: any, for all but construction and destruction.
template <class T, SlotPool P = NativePool<Best>>
class ObjectPool {
 public:
  /// The type that is pointed to: T, or for an array, whose slots have all of it, its elements.
  using Element = std::remove_extent_t<T>;

  /// The deleter of a Handle: ends the object and gives its slot back.
  using Release = PoolRelease<ObjectPool, Element>;
  /// Owns one object, or is null: a std::unique_ptr of two pointers, which converts into PoolPtr<Base>. Must end before the
  /// pool does. T need not be complete yet where it is named: a node may have handles to other nodes.
  using Handle = std::unique_ptr<std::conditional_t<std::is_array_v<T>, Element[], T>, Release>;

  /// A pool whose memory is there from the beginning.
  /// @param max_objects  a pool of none is always full
  /// @param options      name, and what happens when it is full
  /// Errors: std::bad_alloc. Cost: address space for all; physical memory as objects are made, by pages, and beyond the
  /// first 2 MiB by huge pages where the system has them.
  explicit ObjectPool(std::size_t max_objects, const ObjectPoolOptions& options = {})
      : pool_(shape(max_objects)),
        only_slot_(max_objects == 0 ? pool_.acquire() : nullptr),
        when_full_(options.when_full),
        registration_(options.name, live(max_objects)) {}

  /// A pool that takes memory as it needs it. Only for pools below that can grow, such as BestPool.
  /// @param max_objects  full means that there are so many, or that memory is out
  /// @param options      name, and what happens when it is full
  /// Errors: std::bad_alloc when there is no address space for all.
  [[nodiscard]] static ObjectPool growing(std::size_t max_objects, const ObjectPoolOptions& options = {})
    requires std::constructible_from<P, const PoolShape&, Growth>
  {
    return ObjectPool(max_objects, Growth::kGrowing, options);
  }

  /// Pre: no object lives, and no thread uses the pool.
  ~ObjectPool() {
    if (live_.any() || known_live() != 0) report_live();
    if (only_slot_ != nullptr) pool_.release(only_slot_);
  }
  ObjectPool(const ObjectPool&) = delete;
  ObjectPool& operator=(const ObjectPool&) = delete;

  /// A new object T(args...).
  /// @param args  the constructor's arguments
  /// @return its handle; null when there is no slot. Errors: std::bad_alloc instead of null if the pool was told so; what
  /// T's constructor throws, and then the slot is back. Cost: the pool's acquire.
  template <class... Args>
  [[nodiscard]] Handle make(Args&&... args) {
    return Handle(construct(std::forward<Args>(args)...), Release(*this));
  }

  /// The same without a handle: the caller must call destroy(). The elements of an array are value-initialised.
  /// @param args  the constructor's arguments; none for an array
  template <class... Args>
  [[nodiscard]] Element* construct(Args&&... args) {
    void* const slot = pool_.acquire();
    if (slot == nullptr) [[unlikely]] {
      if (when_full_ == WhenFull::kThrow) base::out_of_memory();
      return nullptr;
    }
    if constexpr (std::is_array_v<T>) {
      static_assert(std::rank_v<T> == 1 && sizeof...(Args) == 0, "an array of one dimension, without arguments");
      auto* const first = static_cast<std::remove_cv_t<Element>*>(slot);
      base::Undo undo([&] { pool_.release(slot); });
      std::uninitialized_value_construct_n(first, std::extent_v<T>);
      undo.dismiss();
      return counted(std::launder(first));
    } else if constexpr (std::is_nothrow_constructible_v<T, Args...>) {
      return counted(::new (slot) T(std::forward<Args>(args)...));
    } else {
      base::Undo undo([&] { pool_.release(slot); });
      T* const object = ::new (slot) T(std::forward<Args>(args)...);
      undo.dismiss();
      return counted(object);
    }
  }

  /// Ends an object that construct() of this pool made.
  /// @param object  such an object, the first element of an array, or null
  void destroy(Element* object) noexcept {
    static_assert(std::is_nothrow_destructible_v<Element>, "a handle's end cannot throw");
    if (object == nullptr) return;
    if constexpr (std::is_array_v<T>)
      std::destroy_n(object, std::extent_v<T>);
    else
      std::destroy_at(object);
    live_.on_destroy();
    pool_.release(const_cast<std::remove_cv_t<Element>*>(object));
  }

  /// The most objects that there can be.
  [[nodiscard]] std::size_t capacity() const noexcept { return only_slot_ != nullptr ? 0 : pool_.capacity(); }
  /// The most objects that there were at once, as the pool below counts it (BestPool: an upper bound, see there).
  [[nodiscard]] std::size_t peak_slots() const noexcept
    requires requires(const P& pool) { pool.peak_slots(); }
  {
    return only_slot_ != nullptr ? 0 : pool_.peak_slots();
  }
  /// Gives unused memory back to the system. @return bytes. Only for pools below that can.
  std::size_t trim() noexcept
    requires requires(P& pool) { pool.trim(); }
  {
    return pool_.trim();
  }
  /// The pool of slots below.
  [[nodiscard]] P& pool() noexcept { return pool_; }

 private:
  // Objects that live, where the pool below knows (checked mode); else 0.
  [[nodiscard]] std::size_t known_live() const noexcept {
    if constexpr (requires { pool_.known_live(); })
      return pool_.known_live() - (only_slot_ != nullptr && pool_.known_live() != 0 ? 1 : 0);
    else
      return 0;
  }
  [[gnu::noinline, gnu::cold]] void report_live() const noexcept {
    base::fatal(
        base::HeapError::kObjectsLive, this,
        [](const void* pool) {
          if constexpr (requires { pool_.list_live(); }) static_cast<const P*>(pool)->list_live();
        },
        &pool_);
  }

  ObjectPool(std::size_t max_objects, Growth growth, const ObjectPoolOptions& options)
      : pool_(shape(max_objects), growth),
        only_slot_(max_objects == 0 ? pool_.acquire() : nullptr),
        when_full_(options.when_full),
        registration_(options.name, live(max_objects)) {}

  // Describes the pool to readers outside the process.
  [[nodiscard]] LivePool live(std::size_t objects) const noexcept {
    LivePool live{};
    live.capacity = objects;
    live.slot_bytes = sizeof(T);
    if constexpr (requires { pool_.add_to(live); })
      if (only_slot_ == nullptr) pool_.add_to(live);
    return live;
  }

  [[nodiscard]] Element* counted(Element* object) noexcept {
    live_.on_construct();
    return object;
  }
  // Pools have a slot at least.
  [[nodiscard]] static constexpr PoolShape shape(std::size_t objects) noexcept {
    PoolShape shape;
    shape.slots = objects == 0 ? 1 : objects;
    shape.slot_bytes = sizeof(T);
    shape.alignment = alignof(T);
    return shape;
  }

  P pool_;
  void* only_slot_;  // the slot of a pool of capacity 0: never handed out
  [[no_unique_address]] LiveCount<base::kChecked> live_;
  WhenFull when_full_;
  PoolRegistration registration_;
};

/// A handle of any pool's object, as a handle of a base class of it: three pointers.
///   PoolPtr<Shape> shape = circles.make(1.0);
template <class Base>
using PoolPtr = std::unique_ptr<Base, base::EndAs<Base>>;

/// An ObjectPool that can be moved, and put into containers: its objects and handles stay where they are, and valid.
///   std::vector<MovablePool<Order>> by_region;
///   by_region.push_back(MovablePool<Order>::growing(1'000'000));
/// A moved-from one may only be assigned to and destroyed. Cost: one more pointer to follow.
template <class T, SlotPool P = NativePool<Best>>
class MovablePool {
 public:
  /// The pool that it holds.
  using Pool = ObjectPool<T, P>;
  /// As that of the pool.
  using Handle = typename Pool::Handle;

  /// As the constructor of ObjectPool.
  /// @param max_objects  as there
  /// @param options      as there
  explicit MovablePool(std::size_t max_objects, const ObjectPoolOptions& options = {})
      : pool_(std::make_unique<Pool>(max_objects, options)) {}
  /// As ObjectPool::growing().
  /// @param max_objects  as there
  /// @param options      as there
  [[nodiscard]] static MovablePool growing(std::size_t max_objects, const ObjectPoolOptions& options = {})
    requires std::constructible_from<P, const PoolShape&, Growth>
  {
    return MovablePool(std::unique_ptr<Pool>(new Pool(Pool::growing(max_objects, options))));
  }

  /// As ObjectPool::make().
  /// @param args  the constructor's arguments
  template <class... Args>
  [[nodiscard]] Handle make(Args&&... args) {
    return pool_->make(std::forward<Args>(args)...);
  }
  /// The pool.
  [[nodiscard]] Pool& operator*() const noexcept { return *pool_; }
  /// The pool.
  [[nodiscard]] Pool* operator->() const noexcept { return pool_.get(); }

 private:
  explicit MovablePool(std::unique_ptr<Pool> pool) noexcept : pool_(std::move(pool)) {}

  std::unique_ptr<Pool> pool_;
};

}  // namespace freehold::pool

namespace freehold {
using pool::MovablePool;
using pool::ObjectPool;
using pool::ObjectPoolOptions;
using pool::PoolPtr;
}  // namespace freehold
