// SPDX-License-Identifier: MIT
#include "freehold/heap/block_owners.hpp"

#include <algorithm>
#include <cstdint>
#include <new>
#include <utility>

#include "freehold/base/bits.hpp"
#include "freehold/check/block.hpp"
#include "freehold/os/pages.hpp"
#include "freehold/sync/lock.hpp"

namespace freehold::heap {

// A place in the book.
struct OwnedBlock {
  const void* block;
  void* heap;
  std::size_t bytes;
  OwnedBlock* chain;  // the next one of the same bucket, or unused
  OwnedBlock* next;   // the next one of the same heap
  OwnedBlock* previous;
};

namespace {

using Place = OwnedBlock;
constexpr std::size_t kStepBytes = 64 * 1024;  // bytes of places that are made at once
// A power of two; they fill whole pages.
constexpr std::size_t kLeastBuckets = std::max<std::size_t>(4096, os::kLargestPageBytes / sizeof(Place*));

struct Book {
  sync::Mutex<sync::NativeAtomics> lock;
  Place** buckets = nullptr;
  std::size_t bucket_count = 0, places = 0;  // the latter: in use
  Place* unused = nullptr;

  [[nodiscard]] Place*& bucket_of(const void* block) const noexcept {
    return buckets[check::mix(reinterpret_cast<std::uintptr_t>(block)) & (bucket_count - 1)];
  }
  // Null: no owner has the block.
  [[nodiscard]] Place* find(const void* block) const noexcept {
    Place* place = bucket_count == 0 ? nullptr : bucket_of(block);
    while (place != nullptr && place->block != block) place = place->chain;
    return place;
  }
  // Null: no memory.
  [[nodiscard]] Place* add(const void* block) noexcept {
    if (places >= bucket_count && !grow() && bucket_count == 0) return nullptr;
    if (unused == nullptr && !make_places()) return nullptr;
    Place* const place = unused;
    unused = place->chain;
    Place*& bucket = bucket_of(block);
    place->block = block;
    place->chain = bucket;
    bucket = place;
    ++places;
    return place;
  }
  void remove(Place* place) noexcept {
    Place** at = &bucket_of(place->block);
    while (*at != place) at = &(*at)->chain;
    *at = place->chain;
    place->chain = unused;
    unused = place;
    --places;
  }

 private:
  // Twice the buckets. False: no memory; they stay as they are.
  bool grow() noexcept {
    const std::size_t count = bucket_count == 0 ? kLeastBuckets : 2 * bucket_count;
    auto** const more = static_cast<Place**>(os::Pages::map(count * sizeof(Place*)));
    if (more == nullptr) return false;
    Place** const old = buckets;
    const std::size_t old_count = bucket_count;
    buckets = more;
    bucket_count = count;
    for (std::size_t i = 0; i < old_count; ++i)
      for (Place *place = old[i], *following; place != nullptr; place = following) {
        following = place->chain;
        place->chain = bucket_of(place->block);
        bucket_of(place->block) = place;
      }
    if (old != nullptr) (void)os::Pages::unmap(old, old_count * sizeof(Place*));
    return true;
  }
  [[nodiscard]] bool make_places() noexcept {
    auto* const made = static_cast<std::byte*>(os::Pages::map(kStepBytes));
    if (made == nullptr) return false;
    for (std::size_t at = 0; at + sizeof(Place) <= kStepBytes; at += sizeof(Place))
      unused = ::new (made + at) Place{nullptr, nullptr, 0, unused, nullptr, nullptr};
    return true;
  }
};
static_assert(kLeastBuckets * sizeof(Place*) % os::kLargestPageBytes == 0 && kStepBytes % os::kLargestPageBytes == 0);

constinit Book g_book;

}  // namespace

constinit std::atomic<bool> OwnedBlocks::any_{false};

bool OwnedBlocks::add(const void* block, std::size_t bytes) noexcept {
  const sync::Guard guard(g_book.lock);
  Place* const place = g_book.add(block);
  if (place == nullptr) return false;
  place->heap = heap_;
  place->bytes = bytes;
  place->previous = nullptr;
  place->next = first_;
  if (first_ != nullptr) first_->previous = place;
  first_ = place;
  ++count_;
  bytes_ += bytes;
  any_.store(true, std::memory_order_relaxed);  // relaxed: see any()
  return true;
}

std::size_t OwnedBlocks::remove(const void* block) noexcept {
  const sync::Guard guard(g_book.lock);
  Place* const place = g_book.find(block);
  if (place == nullptr || place->heap != heap_) return 0;
  const std::size_t bytes = place->bytes;
  unlink(place);
  return bytes;
}

void OwnedBlocks::move_to(OwnedBlocks& to) noexcept {
  const sync::Guard guard(g_book.lock);
  OwnedBlock* last = nullptr;
  for (OwnedBlock* place = first_; place != nullptr; place = place->next) (last = place)->heap = to.heap_;
  if (last == nullptr) return;
  last->next = to.first_;
  if (to.first_ != nullptr) to.first_->previous = last;
  to.first_ = std::exchange(first_, nullptr);
  to.count_ += std::exchange(count_, 0);
  to.bytes_ += std::exchange(bytes_, 0);
}

bool OwnedBlocks::has(const void* block) const noexcept { return heap_of(block) == heap_; }

void* OwnedBlocks::remove_any() noexcept {
  const sync::Guard guard(g_book.lock);
  if (first_ == nullptr) return nullptr;
  void* const block = const_cast<void*>(first_->block);
  unlink(first_);
  return block;
}

void* OwnedBlocks::heap_of(const void* block) noexcept {
  const sync::Guard guard(g_book.lock);
  const Place* const place = g_book.find(block);
  return place == nullptr ? nullptr : place->heap;
}

void OwnedBlocks::unlink(OwnedBlock* place) noexcept {
  (place->previous != nullptr ? place->previous->next : first_) = place->next;
  if (place->next != nullptr) place->next->previous = place->previous;
  --count_;
  bytes_ -= place->bytes;
  g_book.remove(place);
}

void OwnedBlocks::before_fork() noexcept { g_book.lock.lock(); }
void OwnedBlocks::after_fork() noexcept { g_book.lock.unlock(); }

}  // namespace freehold::heap
