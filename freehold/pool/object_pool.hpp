// Objects of one type from a pool: construction in a slot, a handle that destroys the object and gives the slot back.
//
//   freehold::pool::ObjectPool<Order> orders(10'000);            // at most ten thousand
//   if (auto order = orders.make(customer, amount)) ...          // null when all are in use; back when `order` ends
//
// Any pool of this folder can stand below; BestPool unless said otherwise. What every pool below tells AddressSanitizer,
// memcheck and a checked build holds for objects too: use after the handle's end and a second release are found.
// Threads: any, for all but construction and destruction of the pool; a handle may end in another thread than it began in.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "freehold/pool/best_pool.hpp"
#include "freehold/pool/concept.hpp"

namespace freehold::pool {

// What make() does when there is no slot.
enum class WhenFull : std::uint8_t {
  kNull,   // returns a null handle
  kThrow,  // throws std::bad_alloc
};

template <class T, SlotPool P = NativePool<Best>>
class ObjectPool {
  static_assert(std::is_nothrow_destructible_v<T>, "a handle's end has nobody to throw to");

 public:
  // Ends the object and gives its slot back.
  class Release {
   public:
    Release() noexcept = default;
    explicit Release(ObjectPool& pool) noexcept : pool_(&pool) {}
    void operator()(T* object) const noexcept { pool_->destroy(object); }

   private:
    ObjectPool* pool_ = nullptr;
  };
  // Two pointers. Null, or the owner of one object. Must end before the pool does.
  using Handle = std::unique_ptr<T, Release>;

  // A pool of at most `capacity` objects, whose memory is there from the beginning.
  // Units: objects. Errors: std::bad_alloc. Cost: address space for all; physical memory only as objects are made.
  explicit ObjectPool(std::size_t capacity, WhenFull when_full = WhenFull::kNull)
      : pool_(shape(capacity)), when_full_(when_full) {}

  // A pool that takes memory as it needs it, up to `limit` objects: full means that the limit is reached or memory is out.
  // Units: objects. Errors: std::bad_alloc when there is no address space for `limit`. Only for pools that can grow.
  [[nodiscard]] static ObjectPool growing(std::size_t limit, WhenFull when_full = WhenFull::kNull)
    requires std::constructible_from<P, const PoolShape&, Growth>
  {
    return ObjectPool(shape(limit), Growth::kGrowing, when_full);
  }

  ObjectPool(const ObjectPool&) = delete;
  ObjectPool& operator=(const ObjectPool&) = delete;

  // A new object T(args...). Null, or std::bad_alloc, as the pool was told, when there is no slot.
  // Errors: what T's constructor throws; the slot is back then. Cost: the pool's acquire.
  template <class... Args>
  [[nodiscard]] Handle make(Args&&... args) {
    return Handle(construct(std::forward<Args>(args)...), Release(*this));
  }

  // The same without a handle: the caller sees to destroy().
  template <class... Args>
  [[nodiscard]] T* construct(Args&&... args) {
    void* const slot = pool_.acquire();
    if (slot == nullptr) [[unlikely]] {
      if (when_full_ == WhenFull::kThrow) throw std::bad_alloc();
      return nullptr;
    }
    if constexpr (std::is_nothrow_constructible_v<T, Args...>) {
      return ::new (slot) T(std::forward<Args>(args)...);
    } else {
      try {
        return ::new (slot) T(std::forward<Args>(args)...);
      } catch (...) {
        pool_.release(slot);
        throw;
      }
    }
  }

  // Ends an object that construct() of this pool made. Pre: `object` is one, or null.
  void destroy(T* object) noexcept {
    if (object == nullptr) return;
    std::destroy_at(object);
    pool_.release(object);
  }

  // The most objects that there can be.
  [[nodiscard]] std::size_t capacity() const noexcept { return pool_.capacity(); }
  // The most that there were at once, as the pool below counts it (BestPool: from above, see there).
  [[nodiscard]] std::size_t high_water() const noexcept
    requires requires(const P& pool) { pool.high_water(); }
  {
    return pool_.high_water();
  }
  // Gives unused memory back to the system; returns bytes.
  std::size_t trim() noexcept
    requires requires(P& pool) { pool.trim(); }
  {
    return pool_.trim();
  }
  [[nodiscard]] P& pool() noexcept { return pool_; }

 private:
  ObjectPool(const PoolShape& shape, Growth growth, WhenFull when_full) : pool_(shape, growth), when_full_(when_full) {}

  [[nodiscard]] static constexpr PoolShape shape(std::size_t objects) noexcept {
    PoolShape shape;
    shape.slots = objects;
    shape.slot_bytes = sizeof(T);
    shape.alignment = alignof(T);
    return shape;
  }

  P pool_;
  WhenFull when_full_;
};

}  // namespace freehold::pool

namespace freehold {
using pool::ObjectPool;
}  // namespace freehold
