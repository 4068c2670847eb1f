// SPDX-License-Identifier: MIT
// Owners' descriptors in OwnerPages (owner_pages.hpp): made and recycled, around fork, statistics, and the checks of the
// invariants.
#pragma once
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <new>

#include "freehold/thread_alloc/owner_pages.hpp"

namespace freehold::thread_alloc {

// ---- descriptors ----

template <sync::Atomics A, class Config>
auto OwnerPages<A, Config>::join() noexcept -> Owner* {
  Owner* owner = take_unused();
  if (owner == nullptr) {
    void* const memory = upstream_.allocate_page();  // not under the lock: see before_fork()
    if (memory == nullptr) {
      errno = ENOMEM;
      return nullptr;
    }
    OwnerBatch* const batch = ::new (memory) OwnerBatch;
    batch->next.store(nullptr);
    const sync::Guard guard(registry_);
    if (OwnerBatch* const last = last_batch_.load())
      last->next.store(batch);
    else
      batches_.store(batch);
    last_batch_.store(batch);
    owner = &batch->owners[0];
    for (std::size_t i = 1; i < OwnerBatch::kOwners; ++i) {
      batch->owners[i].next_unused_.store(unused_.load());
      unused_.store(&batch->owners[i]);
    }
  }
  reset(*owner);
  return owner;
}

template <sync::Atomics A, class Config>
auto OwnerPages<A, Config>::take_unused() noexcept -> Owner* {
  const sync::Guard guard(registry_);
  Owner* const owner = unused_.load();
  if (owner != nullptr) unused_.store(owner->next_unused_.load());
  return owner;
}

// The rings of a recycled descriptor still point to pages that are gone. Its counters are kept.
template <sync::Atomics A, class Config>
void OwnerPages<A, Config>::reset(Owner& owner) noexcept {
  for (PageQueue& queue : owner.queues_) {
    queue.current.store(&owner.none_);
    queue.spare.store(nullptr);
    queue.open.make_ring();
    queue.full.make_ring();
  }
  owner.remote_.reopen();
  owner.state_.store(kJoined, std::memory_order_relaxed);  // relaxed: for stats
}

// Visits every descriptor, in the order of their creation. Pre: registry_ is held.
template <sync::Atomics A, class Config>
template <class F>
void OwnerPages<A, Config>::for_each_owner(F visit) noexcept {
  for (OwnerBatch* batch = batches_.load(); batch != nullptr; batch = batch->next.load())
    for (Owner& owner : batch->owners) visit(owner);
}

template <sync::Atomics A, class Config>
void OwnerPages<A, Config>::release_descriptors() noexcept {
  OwnerBatch* batch = batches_.load();
  batches_.store(nullptr);
  last_batch_.store(nullptr);
  unused_.store(nullptr);
  while (batch != nullptr) {
    OwnerBatch* const next = batch->next.load();
    batch->~OwnerBatch();
    upstream_.free_page(batch);
    batch = next;
  }
}

template <sync::Atomics A, class Config>
void OwnerPages<A, Config>::before_fork() noexcept {
  registry_.lock();
  for_each_owner([](Owner& owner) { owner.remote_.before_fork(); });
}

template <sync::Atomics A, class Config>
void OwnerPages<A, Config>::after_fork() noexcept {
  for_each_owner([](Owner& owner) { owner.remote_.after_fork(); });
  registry_.unlock();
}

// ---- what it holds, and whether it is right ----

template <sync::Atomics A, class Config>
void OwnerPages<A, Config>::stats(OwnerPagesStats& out) noexcept {
  out = {};
  std::uint64_t handed_over = 0, drained = 0;
  // relaxed throughout: a snapshot of statistics.
  const auto sum = [&](const Counters& c) {
    handed_over += c.handed_over.load(std::memory_order_relaxed);
    drained += c.drained.load(std::memory_order_relaxed);
    out.hand_overs += c.hand_overs.load(std::memory_order_relaxed);
    out.drains += c.drains.load(std::memory_order_relaxed);
    out.abandoned_frees += c.abandoned_frees.load(std::memory_order_relaxed);
  };
  const sync::Guard guard(registry_);
  sum(ownerless_);
  for_each_owner([&](Owner& owner) {
    sum(owner.counters_);
    const std::uint32_t state = owner.state_.load(std::memory_order_relaxed);
    const std::uint32_t pages = owner.pages_.load(std::memory_order_relaxed);
    out.descriptors += 1;
    out.owners += state == kJoined ? 1 : 0;
    out.owners_left += state == kLeft ? 1 : 0;
    out.pages += pages;
    out.pages_left += state == kLeft ? pages : 0;
    out.contention += owner.remote_.contention();
    for (const Outbox& box : owner.outboxes_) out.gathered += box.count.load(std::memory_order_relaxed);
  });
  out.pending = handed_over > drained ? handed_over - drained : 0;
  out.remote_frees = handed_over + out.abandoned_frees + out.gathered;
}

template <sync::Atomics A, class Config>
template <class F>
bool OwnerPages<A, Config>::all_pages(const Owner& self, F holds) noexcept {
  for (unsigned c = 0; c < kClasses; ++c) {
    const PageQueue& queue = self.queues_[c];
    for (const Links* ring : {&queue.open, &queue.full})
      for (const Links* link = ring->next.load(); link != ring; link = link->next.load())
        if (!holds(queue, static_cast<const Page&>(*link), c)) return false;
    if (const Page* const spare = queue.spare.load())
      if (!holds(queue, *spare, c)) return false;
  }
  return true;
}

template <sync::Atomics A, class Config>
bool OwnerPages<A, Config>::check_invariants(const Owner& self) const noexcept {
  std::uint32_t pages = 0;
  const bool good = all_pages(self, [&](const PageQueue& queue, const Page& page, unsigned c) {
    ++pages;
    return check_page(self, queue, page, c);
  });
  return good && pages == self.pages_.load(std::memory_order_relaxed);  // relaxed: our own
}

template <sync::Atomics A, class Config>
bool OwnerPages<A, Config>::check_page(const Owner& self, const PageQueue& queue, const Page& page, unsigned c) noexcept {
  const std::uint32_t used = page.used.load(std::memory_order_relaxed);  // relaxed: our own
  if (page.owner.load() != &self || page.size_class.load() != c) return false;
  const Layout layout = layout_of(&page, c);
  std::array<bool, Config::kPageBytes / kGranule> to_see{};  // by offset: free slots not met yet
  for (std::uint32_t i = 0; i < layout.capacity(); ++i) to_see[layout.offset(i) / kGranule] = true;
  std::uint32_t free_slots = 0;
  for (const Var<Node*>* list : {&page.free, &page.given}) {
    for (const Node* node = list->load(); node != nullptr; node = node->next.load(), ++free_slots) {
      const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(node);
      bool& expected = to_see[address % Config::kPageBytes / kGranule];
      if (page_of(node) != &page || address % kGranule != 0 || !expected) return false;
      expected = false;
    }
  }
  if (used + free_slots != layout.capacity()) return false;
  if (page.full.load() && free_slots != 0) return false;
  // Empty pages: the current one and the spare, no other.
  return used > 0 || &page == queue.current.load() || &page == queue.spare.load();
}

template <sync::Atomics A, class Config>
std::size_t OwnerPages<A, Config>::slots_in_use(const Owner& self) const noexcept {
  std::size_t sum = 0;
  all_pages(self, [&](const PageQueue&, const Page& page, unsigned) {
    sum += page.used.load(std::memory_order_relaxed);  // relaxed: our own
    return true;
  });
  return sum;
}

}  // namespace freehold::thread_alloc
