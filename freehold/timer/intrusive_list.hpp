// SPDX-License-Identifier: MIT
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

/// The links of an object: `struct Job : ListHook<Job> { … };`.
/// @tparam T  the type of the objects
template <class T>
class ListHook {
 public:
  /// In no ring.
  ListHook() noexcept = default;
  ListHook(const ListHook&) = delete;
  ListHook& operator=(const ListHook&) = delete;

  /// Returns whether it is in a ring.
  [[nodiscard]] bool is_linked() const noexcept { return next_ != nullptr; }
  /// Returns whether its ring has no other member.
  [[nodiscard]] bool is_alone() const noexcept { return next_ == this; }
  /// The next one of its ring.
  [[nodiscard]] ListHook* next() const noexcept { return next_; }
  /// The object whose links these are.
  [[nodiscard]] T& object() noexcept { return static_cast<T&>(*this); }
  /// Makes a ring of itself. Pre: not linked.
  void make_ring() noexcept { next_ = prev_ = this; }
  /// Enters a ring.
  /// @param position  the member to stand before
  /// Pre: this is not linked.
  void link_before(ListHook& position) noexcept {
    FREEHOLD_ASSERT(!is_linked() && position.is_linked());
    next_ = &position;
    prev_ = position.prev_;
    prev_->next_ = this;
    position.prev_ = this;
  }
  /// Leaves its ring.
  void unlink() noexcept {
    FREEHOLD_ASSERT(is_linked());
    next_->prev_ = prev_;
    prev_->next_ = next_;
    next_ = prev_ = nullptr;
  }
  /// Makes one ring of two.
  /// @param other  its ring stands before this, in its order; not the same ring
  void splice_ring(ListHook& other) noexcept {
    ListHook* const last = other.prev_;
    prev_->next_ = &other;
    other.prev_ = prev_;
    last->next_ = this;
    prev_ = last;
  }
  /// Returns whether the invariant holds here.
  [[nodiscard]] bool is_consistent() const noexcept { return next_->prev_ == this && prev_->next_ == this; }

 private:
  ListHook* next_ = nullptr;
  ListHook* prev_ = nullptr;
};

/// A doubly linked list that owns nothing; an object must leave before it ends.
/// @tparam T  the type of the objects, derived from ListHook<T>
/// Cost: O(1); for_each(): O(n).
template <class T>
class IntrusiveList {
 public:
  /// An empty list.
  IntrusiveList() noexcept { end_.make_ring(); }

  /// Returns whether it has no object.
  [[nodiscard]] bool empty() const noexcept { return end_.is_alone(); }
  /// The first object. Pre: not empty.
  [[nodiscard]] T& front() const noexcept {
    FREEHOLD_ASSERT(!empty());
    return end_.next()->object();
  }
  /// Puts an object to the end.
  /// @param object  is in no list
  void push_back(T& object) noexcept { hook(object).link_before(end_); }
  /// Takes the first object out. Pre: not empty.
  T& pop_front() noexcept {
    T& object = front();
    hook(object).unlink();
    return object;
  }
  /// Takes an object out of its list.
  /// @param object  is in a list, whichever
  static void erase(T& object) noexcept { hook(object).unlink(); }
  /// Moves all objects of another list to the end of this one.
  /// @param other  is empty then
  void splice_back(IntrusiveList& other) noexcept {
    if (other.empty()) return;
    ListHook<T>& first = *other.end_.next();
    other.end_.unlink();
    other.end_.make_ring();
    end_.splice_ring(first);
  }
  /// Puts a whole ring without a sentinel to the end.
  /// @param first  a member of it, which comes first
  void splice_ring_back(ListHook<T>& first) noexcept { end_.splice_ring(first); }

  /// Calls f(T&) for each object, in order. Cost: O(n).
  /// @param f  what is called
  template <class F>
  void for_each(F&& f) const {
    for (ListHook<T>* at = end_.next(); at != &end_; at = at->next()) f(at->object());
  }

 private:
  template <class Locking>
  friend class TimerQueue;
  friend struct Inside;  // tests/support/inside.hpp

  // Ends the process in a checked build if the invariant does not hold. Cost: O(n).
  void check_invariants() const {
    FREEHOLD_ASSERT(end_.is_consistent());
    for_each([](T& object) { FREEHOLD_ASSERT(hook(object).is_consistent()); });
  }
  [[nodiscard]] static ListHook<T>& hook(T& object) noexcept { return object; }

  ListHook<T> end_;
};

}  // namespace freehold::timer
