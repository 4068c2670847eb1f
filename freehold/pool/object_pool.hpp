// Objects of one type from a pool: construction in a slot, a handle that destroys the object and gives the slot back.
//
//   freehold::pool::ObjectPool<Order> orders(10'000);            // at most ten thousand
//   if (auto order = orders.make(customer, amount)) ...          // null when all are in use; back when `order` ends
//
// Any pool of this folder can stand below; BestPool unless said otherwise. What every pool below tells AddressSanitizer,
// memcheck and a checked build holds for objects too: use after the handle's end and a second release are found. A checked
// build notices a pool that ends before its objects, too.
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
#include "freehold/base/end_as.hpp"
#include "freehold/base/out_of_memory.hpp"
#include "freehold/base/undo.hpp"
#include "freehold/pool/best_pool.hpp"
#include "freehold/pool/concept.hpp"

namespace freehold::pool {

// What make() does when there is no slot.
enum class WhenFull : std::uint8_t {
  kNull,   // returns a null handle
  kThrow,  // throws std::bad_alloc
};

// How many objects of a pool live, if that is to be known.
template <bool kKnown>
class LiveCount {
 public:
  void begins() noexcept {}
  void ends() noexcept {}
  [[nodiscard]] static constexpr bool any() noexcept { return false; }
};
template <>
class LiveCount<true> {
 public:
  // relaxed, all: read at the pool's end, when nobody uses it any more.
  void begins() noexcept { count_.fetch_add(1, std::memory_order_relaxed); }
  void ends() noexcept { count_.fetch_sub(1, std::memory_order_relaxed); }
  [[nodiscard]] bool any() const noexcept { return count_.load(std::memory_order_relaxed) != 0; }

 private:
  std::atomic<std::size_t> count_{0};
};

template <class T, SlotPool P = NativePool<Best>>
class ObjectPool {
 public:
  // What is pointed to: T, or for an array, whose slots have all of it, its elements.
  using Element = std::remove_extent_t<T>;

  // Ends the object and gives its slot back.
  class Release {
   public:
    using object_type = Element;

    Release() noexcept = default;
    explicit Release(ObjectPool& pool) noexcept : pool_(&pool) {}
    void operator()(Element* object) const noexcept { pool_->destroy(object); }
    [[nodiscard]] void* owner() const noexcept { return pool_; }
    static void end(void* pool, Element* object) noexcept { static_cast<ObjectPool*>(pool)->destroy(object); }

   private:
    ObjectPool* pool_ = nullptr;
  };
  // Two pointers. Null, or the owner of one object. Must end before the pool does. T need not be complete yet where it is
  // named: a node may have handles of its own kind. That of a T converts into PoolPtr<Base>.
  using Handle = std::unique_ptr<std::conditional_t<std::is_array_v<T>, Element[], T>, Release>;

  // A pool of at most `capacity` objects, whose memory is there from the beginning. One of none is always full.
  // Units: objects. Errors: std::bad_alloc. Cost: address space for all; physical memory as objects are made, by pages, and
  // beyond the first 2 MiB by huge pages where the system has them.
  explicit ObjectPool(std::size_t capacity, WhenFull when_full = WhenFull::kNull)
      : pool_(shape(capacity)), only_slot_(capacity == 0 ? pool_.acquire() : nullptr), when_full_(when_full) {}

  // A pool that takes memory as it needs it, up to `limit` objects: full means that the limit is reached or memory is out.
  // Units: objects. Errors: std::bad_alloc when there is no address space for `limit`. Only for pools that can grow.
  [[nodiscard]] static ObjectPool growing(std::size_t limit, WhenFull when_full = WhenFull::kNull)
    requires std::constructible_from<P, const PoolShape&, Growth>
  {
    return ObjectPool(limit, Growth::kGrowing, when_full);
  }

  // Pre: no object lives, and no thread uses the pool.
  ~ObjectPool() {
    if (live_.any()) base::fatal(base::HeapError::kObjectsLive, this);
    if (only_slot_ != nullptr) pool_.release(only_slot_);
  }
  ObjectPool(const ObjectPool&) = delete;
  ObjectPool& operator=(const ObjectPool&) = delete;

  // A new object T(args...). Null, or std::bad_alloc, as the pool was told, when there is no slot.
  // Errors: what T's constructor throws; the slot is back then. Cost: the pool's acquire.
  template <class... Args>
  [[nodiscard]] Handle make(Args&&... args) {
    return Handle(construct(std::forward<Args>(args)...), Release(*this));
  }

  // The same without a handle: the caller sees to destroy(). The elements of an array are value-initialised.
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

  // Ends an object that construct() of this pool made. Pre: `object` is one, or null; of an array the first element.
  void destroy(Element* object) noexcept {
    static_assert(std::is_nothrow_destructible_v<Element>, "a handle's end has nobody to throw to");
    if (object == nullptr) return;
    if constexpr (std::is_array_v<T>)
      std::destroy_n(object, std::extent_v<T>);
    else
      std::destroy_at(object);
    live_.ends();
    pool_.release(const_cast<std::remove_cv_t<Element>*>(object));
  }

  // The most objects that there can be.
  [[nodiscard]] std::size_t capacity() const noexcept { return only_slot_ != nullptr ? 0 : pool_.capacity(); }
  // The most that there were at once, as the pool below counts it (BestPool: from above, see there).
  [[nodiscard]] std::size_t high_water() const noexcept
    requires requires(const P& pool) { pool.high_water(); }
  {
    return only_slot_ != nullptr ? 0 : pool_.high_water();
  }
  // Gives unused memory back to the system; returns bytes.
  std::size_t trim() noexcept
    requires requires(P& pool) { pool.trim(); }
  {
    return pool_.trim();
  }
  [[nodiscard]] P& pool() noexcept { return pool_; }

 private:
  ObjectPool(std::size_t limit, Growth growth, WhenFull when_full)
      : pool_(shape(limit), growth), only_slot_(limit == 0 ? pool_.acquire() : nullptr), when_full_(when_full) {}

  [[nodiscard]] Element* counted(Element* object) noexcept {
    live_.begins();
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
  void* only_slot_;  // of a pool of none: never handed out
  [[no_unique_address]] LiveCount<base::kChecked> live_;
  WhenFull when_full_;
};

// A handle of any pool's object as one of a base of it: three pointers.
//   PoolPtr<Shape> shape = circles.make(1.0);
template <class Base>
using PoolPtr = std::unique_ptr<Base, base::EndAs<Base>>;

// A pool that can be moved, and put into containers: its objects and handles stay where they are, and valid.
//   std::vector<MovablePool<Order>> by_region;
//   by_region.push_back(MovablePool<Order>::growing(1'000'000));
// A moved-from one may only be assigned to and destroyed. Cost: one more pointer to follow.
template <class T, SlotPool P = NativePool<Best>>
class MovablePool {
 public:
  using Pool = ObjectPool<T, P>;
  using Handle = typename Pool::Handle;

  explicit MovablePool(std::size_t capacity, WhenFull when_full = WhenFull::kNull)
      : pool_(std::make_unique<Pool>(capacity, when_full)) {}
  [[nodiscard]] static MovablePool growing(std::size_t limit, WhenFull when_full = WhenFull::kNull)
    requires std::constructible_from<P, const PoolShape&, Growth>
  {
    return MovablePool(std::unique_ptr<Pool>(new Pool(Pool::growing(limit, when_full))));
  }

  template <class... Args>
  [[nodiscard]] Handle make(Args&&... args) {
    return pool_->make(std::forward<Args>(args)...);
  }
  [[nodiscard]] Pool& operator*() const noexcept { return *pool_; }
  [[nodiscard]] Pool* operator->() const noexcept { return pool_.get(); }

 private:
  explicit MovablePool(std::unique_ptr<Pool> pool) noexcept : pool_(std::move(pool)) {}

  std::unique_ptr<Pool> pool_;
};

}  // namespace freehold::pool

namespace freehold {
using pool::MovablePool;
using pool::ObjectPool;
using pool::PoolPtr;
}  // namespace freehold
