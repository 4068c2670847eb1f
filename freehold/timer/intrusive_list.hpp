// A doubly linked list of objects that bring their links along: no allocation, O(1) everywhere but in for_each.
// The list is a ring through a sentinel; so an object leaves without knowing in which list it is, and a ring of objects
// without a sentinel (intrusive_multimap.hpp) becomes a list by one insertion.
//
//   Invariant: hook->next->prev == hook for every hook of a ring; a hook that is in no ring has null links.
//
// Threads: one at a time. The list owns nothing; an object must leave before it ends.
#pragma once
#include <cstddef>

#include "freehold/base/check.hpp"

namespace freehold::timer {

// What T derives from: `struct Job : ListHook<Job> { … };`
template <class T>
class ListHook {
 public:
  ListHook() noexcept = default;
  ListHook(const ListHook&) = delete;
  ListHook& operator=(const ListHook&) = delete;

  [[nodiscard]] bool is_linked() const noexcept { return next_ != nullptr; }
  [[nodiscard]] bool is_alone() const noexcept { return next_ == this; }
  [[nodiscard]] ListHook* next() const noexcept { return next_; }
  [[nodiscard]] T& object() noexcept { return static_cast<T&>(*this); }
  // A ring of itself. Pre: not linked.
  void make_ring() noexcept { next_ = prev_ = this; }
  // Pre: this is not linked, `position` is.
  void link_before(ListHook& position) noexcept {
    FREEHOLD_ASSERT(!is_linked() && position.is_linked());
    next_ = &position;
    prev_ = position.prev_;
    prev_->next_ = this;
    position.prev_ = this;
  }
  void unlink() noexcept {
    FREEHOLD_ASSERT(is_linked());
    next_->prev_ = prev_;
    prev_->next_ = next_;
    next_ = prev_ = nullptr;
  }
  // The rings of both become one: that of `other` stands before this, in its order. Pre: they are not the same ring.
  void splice_ring(ListHook& other) noexcept {
    ListHook* const last = other.prev_;
    prev_->next_ = &other;
    other.prev_ = prev_;
    last->next_ = this;
    prev_ = last;
  }
  [[nodiscard]] bool is_consistent() const noexcept { return next_->prev_ == this && prev_->next_ == this; }

 private:
  ListHook* next_ = nullptr;
  ListHook* prev_ = nullptr;
};

template <class T>
class IntrusiveList {
 public:
  IntrusiveList() noexcept { end_.make_ring(); }

  [[nodiscard]] bool empty() const noexcept { return end_.is_alone(); }
  // Pre: not empty.
  [[nodiscard]] T& front() const noexcept {
    FREEHOLD_ASSERT(!empty());
    return end_.next()->object();
  }
  // Pre: `object` is in no list.
  void push_back(T& object) noexcept { hook(object).link_before(end_); }
  // Pre: not empty.
  T& pop_front() noexcept {
    T& object = front();
    hook(object).unlink();
    return object;
  }
  // Pre: `object` is in a list, whichever.
  static void erase(T& object) noexcept { hook(object).unlink(); }
  // All of `other` to the end of this one.
  void splice_back(IntrusiveList& other) noexcept {
    if (other.empty()) return;
    ListHook<T>& first = *other.end_.next();
    other.end_.unlink();
    other.end_.make_ring();
    end_.splice_ring(first);
  }
  // A whole ring without a sentinel to the end.
  void splice_ring_back(ListHook<T>& first) noexcept { end_.splice_ring(first); }

  template <class F>
  void for_each(F&& f) const {
    for (ListHook<T>* at = end_.next(); at != &end_; at = at->next()) f(at->object());
  }
  // The invariant. Cost: O(n).
  void check_invariants() const {
    FREEHOLD_ASSERT(end_.is_consistent());
    for_each([](T& object) { FREEHOLD_ASSERT(hook(object).is_consistent()); });
  }

 private:
  [[nodiscard]] static ListHook<T>& hook(T& object) noexcept { return object; }

  ListHook<T> end_;
};

}  // namespace freehold::timer
