// SPDX-License-Identifier: MIT
// The slow paths of OwnerPages (owner_pages.hpp): a page for an allocation, remote frees, and pages left behind.
#pragma once
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <new>

#include "freehold/thread_alloc/owner_pages.hpp"

namespace freehold::thread_alloc {

// ---- allocate ----

template <sync::Atomics A, class Config>
void* OwnerPages<A, Config>::allocate_slow(Owner& self, unsigned c) noexcept {
  PageQueue& queue = self.queues_[c];
  if (self.remote_.ready(A::decide(Config::kCollectAt, std::uint32_t{1}))) collect(self);
  Page* page = next_page(self, queue);
  if (page == nullptr && collect(self)) page = next_page(self, queue);
  if (page == nullptr) {
    send_outboxes(self);  // before memory is asked for, others' slots go back to them
    page = new_page(self, c);
  }
  return page == nullptr ? nullptr : pop(page, page->free.load());
}

// Makes a page with a free slot current: the current one, the next open one, or the spare; else null.
template <sync::Atomics A, class Config>
auto OwnerPages<A, Config>::next_page(Owner& self, PageQueue& queue) noexcept -> Page* {
  for (Page* page = queue.current.load(); page != &self.none_; page = queue.current.load()) {
    if (page->free.load() != nullptr) return page;
    if (Node* const given = page->given.load()) {
      page->free.store(given);
      page->given.store(nullptr);
      return page;
    }
    page->remove();
    page->full.store(true);
    page->insert_before(queue.full);
    Links* const next = queue.open.next.load();
    queue.current.store(next == &queue.open ? &self.none_ : static_cast<Page*>(next));
  }
  // Pages may have opened while there was no current one.
  Page* page = queue.spare.load();
  if (queue.open.next.load() != &queue.open) {
    page = static_cast<Page*>(queue.open.next.load());
  } else if (page != nullptr) {
    queue.spare.store(nullptr);
    page->insert_before(queue.open);
  } else {
    return nullptr;
  }
  queue.current.store(page);
  return next_page(self, queue);
}

template <sync::Atomics A, class Config>
auto OwnerPages<A, Config>::new_page(Owner& self, unsigned c) noexcept -> Page* {
  void* const memory = upstream_.allocate_page();
  if (memory == nullptr) {
    errno = ENOMEM;
    return nullptr;
  }
  char* const base = static_cast<char*>(memory);
  const Layout layout = layout_of(memory, c);
  Page* const page = ::new (base + layout.header) Page;
  page->owner.store(&self);
  page->size_class.store(c);
  Node* node = ::new (base + layout.offset(0)) Node;
  page->free.store(node);
  for (std::uint32_t i = 1; i < layout.capacity(); ++i) {
    Node* const next = ::new (base + layout.offset(i)) Node;
    node->next.store(next);
    node = next;
  }
  node->next.store(nullptr);
  PageQueue& queue = self.queues_[c];
  page->insert_before(queue.open);
  queue.current.store(page);
  add(self.pages_, std::uint32_t{1});
  return page;
}

// ---- free by the owner ----

template <sync::Atomics A, class Config>
void OwnerPages<A, Config>::release_slow(Owner& self, Page* page, void* slot, std::uint32_t used) noexcept {
  // The double frees that are seen without extra work: into an empty page, and of the slot freed last.
  if (used == 0 || page->given.load() == slot) return base::fatal(base::HeapError::kDoubleFree, slot);
  PageQueue& queue = self.queues_[page->size_class.load()];
  give(page, slot, used);
  if (page->full.load()) {
    page->full.store(false);
    page->remove();
    page->insert_before(queue.open);
  }
  if (used > 1 || page == queue.current.load()) return;
  page->remove();
  if (queue.spare.load() == nullptr)
    queue.spare.store(page);
  else
    return_page(self, page);
}

// Pre: the page is empty and in no ring.
template <sync::Atomics A, class Config>
void OwnerPages<A, Config>::return_page(Owner& self, Page* page) noexcept {
  page->~Page();
  upstream_.free_page(memory_of(page));
  add(self.pages_, ~std::uint32_t{0});
}

// ---- free by another thread ----

template <sync::Atomics A, class Config>
void OwnerPages<A, Config>::release_remote(Owner* self, Owner* owner, Node* node) noexcept {
  if (self == nullptr || Config::kHandOver == 1) return hand_over(self, owner, node, node, 1);
  // Neighbouring descriptors differ in these bits: a batch's lie sizeof(Owner) apart.
  const std::uintptr_t hash = reinterpret_cast<std::uintptr_t>(owner) / sizeof(Owner);
  Outbox& box = self->outboxes_[hash & (Config::kOutboxes - 1)];
  std::uint32_t n = box.count.load(std::memory_order_relaxed);  // relaxed: our own
  if (n > 0 && box.target.load() != owner) {
    send_outbox(*self, box);
    n = 0;
  }
  if (n == 0) {
    box.target.store(owner);
    box.last.store(node);
  } else {
    node->next.store(box.first.load());
  }
  box.first.store(node);
  box.count.store(n + 1, std::memory_order_relaxed);  // relaxed: for stats
  if (n + 1 >= Config::kHandOver) send_outbox(*self, box);
}

template <sync::Atomics A, class Config>
void OwnerPages<A, Config>::send_outbox(Owner& self, Outbox& box) noexcept {
  const std::uint32_t n = box.count.load(std::memory_order_relaxed);  // relaxed: our own
  if (n == 0) return;
  box.count.store(0, std::memory_order_relaxed);
  hand_over(&self, box.target.load(), box.first.load(), box.last.load(), n);
}

template <sync::Atomics A, class Config>
void OwnerPages<A, Config>::send_outboxes(Owner& self) noexcept {
  for (Outbox& box : self.outboxes_) send_outbox(self, box);
}

// Until the push, the slots of the batch keep their pages, and these the descriptor of `owner`.
template <sync::Atomics A, class Config>
void OwnerPages<A, Config>::hand_over(Owner* self, Owner* owner, Node* first, Node* last, std::uint32_t n) noexcept {
  if (owner->remote_.push(first, last, n)) {
    count(self, &Counters::handed_over, n);
    count(self, &Counters::hand_overs, 1);
    return;
  }
  count(self, &Counters::abandoned_frees, n);
  for (std::uint32_t i = 0; i < n; ++i) {
    Node* const node = first;
    if (node != last) first = node->next.load();
    release_abandoned(node);
  }
}

// Takes back what other threads freed; false if there was nothing.
template <sync::Atomics A, class Config>
bool OwnerPages<A, Config>::collect(Owner& self) noexcept {
  Node* node = self.remote_.drain();
  if (node == nullptr) return false;
  std::uint64_t n = 0;
  for (; node != nullptr; ++n) {
    Node* const next = node->next.load();
    release(self, page_of(node), node);
    node = next;
  }
  add(self.counters_.drained, n);
  add(self.counters_.drains, std::uint64_t{1});
  return true;
}

// ---- pages left behind ----

// Pre: the owner's list is closed, and the calling thread saw that.
template <sync::Atomics A, class Config>
void OwnerPages<A, Config>::release_abandoned(Node* node) noexcept {
  Page* const page = page_of(node);
  Owner* const owner = page->owner.load();
  node->~Node();
  const std::uint32_t used = page->used.fetch_sub(1, Orders::kPageCountDown);
  if (used == 0) return base::fatal(base::HeapError::kDoubleFree, node);
  if (used > 1) return;
  page->~Page();
  upstream_.free_page(memory_of(page));
  count_down(*owner);
}

template <sync::Atomics A, class Config>
void OwnerPages<A, Config>::count_down(Owner& owner) noexcept {
  if (owner.pages_.fetch_sub(1, Orders::kOwnerCountDown) != 1) return;
  owner.state_.store(kUnused, std::memory_order_relaxed);  // relaxed: for stats
  const sync::Guard guard(registry_);
  owner.next_unused_.store(unused_.load());
  unused_.store(&owner);
}

template <sync::Atomics A, class Config>
void OwnerPages<A, Config>::leave(Owner& self) noexcept {
  trim(self);
  // Every page that is left has used > 0, and its `owner` and `used`, which the holders of its slots need, are final.
  self.state_.store(kLeft, std::memory_order_relaxed);  // relaxed: for stats
  add(self.pages_, std::uint32_t{1});
  Node* node = self.remote_.close();
  std::uint64_t n = 0;
  for (; node != nullptr; ++n) {
    Node* const next = node->next.load();
    release_abandoned(node);
    node = next;
  }
  add(self.counters_.drained, n);
  count_down(self);
}

template <sync::Atomics A, class Config>
std::size_t OwnerPages<A, Config>::trim(Owner& self) noexcept {
  const std::uint32_t before = self.pages_.load(std::memory_order_relaxed);  // relaxed: our own
  send_outboxes(self);
  collect(self);
  for (PageQueue& queue : self.queues_) {
    if (Page* const spare = queue.spare.load()) return_page(self, spare);
    queue.spare.store(nullptr);
    Page* const current = queue.current.load();
    // Only the current one of the open pages can be empty: the others become spares or go back when they are emptied.
    if (current == &self.none_ || current->used.load(std::memory_order_relaxed) != 0) continue;
    current->remove();
    queue.current.store(&self.none_);
    return_page(self, current);
  }
  return before - self.pages_.load(std::memory_order_relaxed);
}

}  // namespace freehold::thread_alloc
