// SPDX-License-Identifier: MIT
// An ordered multimap of objects that bring their links along: no allocation on insert or erase, and all entries of one key
// are taken in O(1) after the look-up. "Practical testing 30" wished for it. The ordered part is a treap (Seidel and Aragon,
// "Randomized search trees", 1996): a search tree by keys and a heap by random priorities. It has one node for each distinct
// key, its first entry; the others stand behind that in a ring. When the first leaves, the next takes its place in the tree,
// as it stands there (no rebalancing); to take all, one node leaves the tree and the ring is handed out as it is.
//
//   Invariant: the heads, and only they, are in the tree, in strictly ascending order of keys; no head has a higher priority
//   than its parent; first_ is the head of the lowest key; every entry of a head's ring has the head's key, the oldest first.
//
// Threads: one at a time. Cost: insert O(log of the number of distinct keys) in the mean over the priorities; erase of one
// among several O(1), take_all the look-up, take_front and other erases O(1) in the mean.
#pragma once
#include <cstdint>
#include <functional>
#include <utility>

#include "freehold/base/check.hpp"
#include "freehold/timer/intrusive_list.hpp"

namespace freehold::timer {

/// The links and the key of an object: `struct Job : MultimapHook<Job, Time> { … };`.
/// @tparam T    the type of the objects
/// @tparam Key  the type of the keys
template <class T, class Key>
class MultimapHook : public ListHook<T> {
 public:
  /// May change while the object is not linked.
  Key key{};

 private:
  template <class, class, class>
  friend class IntrusiveMultimap;
  // In the tree, of heads only.
  MultimapHook* parent_ = nullptr;
  MultimapHook* left_ = nullptr;
  MultimapHook* right_ = nullptr;
  std::uint32_t priority_ = 0;
  bool is_head_ = false;
};

/// An ordered multimap that owns nothing; an object must leave before it ends.
/// @tparam T        the type of the objects, derived from MultimapHook<T, Key>
/// @tparam Key      the type of the keys
/// @tparam Compare  their order
template <class T, class Key, class Compare = std::less<Key>>
class IntrusiveMultimap {
 public:
  /// An empty multimap.
  IntrusiveMultimap() noexcept = default;
  IntrusiveMultimap(const IntrusiveMultimap&) = delete;
  IntrusiveMultimap& operator=(const IntrusiveMultimap&) = delete;

  /// Returns whether it has no entry.
  [[nodiscard]] bool empty() const noexcept { return root_ == nullptr; }
  /// The oldest entry of the lowest key. Pre: not empty.
  [[nodiscard]] T& front() noexcept { return first_->object(); }
  /// The same.
  [[nodiscard]] const T& front() const noexcept { return first_->object(); }

  /// Inserts an entry behind those of the same key.
  /// @param entry  is linked nowhere
  void insert(T& entry) noexcept {
    const Place place = find(entry.key);
    if (place.equal != nullptr) {
      static_cast<Hook&>(entry).link_before(*place.equal);
    } else {
      insert_head(entry, place);
    }
  }

  /// Takes an entry out.
  /// @param entry  is in this map, or in the list to which it was taken
  void erase(T& entry) noexcept {
    Hook& hook = entry;
    if (hook.is_head_) {
      if (hook.is_alone()) {
        erase_head(hook);
      } else {
        replace_head(hook, hook.next()->object());
      }
    }
    hook.unlink();
  }

  /// Moves all entries of a key to the end of a list, the oldest first.
  /// @param key  the key
  /// @param to   the list
  void take_all(const Key& key, IntrusiveList<T>& to) noexcept {
    if (const Place place = find(key); place.equal != nullptr) take(*place.equal, to);
  }
  /// The same for the lowest key. Pre: not empty.
  /// @param to  the list
  void take_front(IntrusiveList<T>& to) noexcept { take(*first_, to); }

  /// Calls f(const T&) for each entry, in the order of keys, and of insertion among equal ones. Cost: O(n).
  /// @param f  what is called
  template <class F>
  void for_each(F&& f) const {
    for (Hook* head = first_; head != nullptr; head = next(head)) {
      f(std::as_const(head->object()));
      for (ListHook<T>* at = head->next(); at != head; at = at->next()) f(std::as_const(at->object()));
    }
  }

 private:
  template <class Locking>
  friend class TimerQueue;
  friend struct Inside;  // tests/support/inside.hpp

  // Ends the process in a checked build if an invariant does not hold. Cost: O(n).
  void check_invariants() const {
    FREEHOLD_ASSERT((root_ == nullptr) == (first_ == nullptr) && (root_ == nullptr || root_->parent_ == nullptr));
    FREEHOLD_ASSERT(first_ == nullptr || first_->left_ == nullptr);
    const Hook* before = nullptr;
    for (Hook* head = first_; head != nullptr; head = next(head)) {
      FREEHOLD_ASSERT(head->is_head_ && head->is_consistent());
      FREEHOLD_ASSERT(before == nullptr || Compare{}(before->key, head->key));
      for (const Hook* child : {head->left_, head->right_})
        FREEHOLD_ASSERT(child == nullptr || (child->parent_ == head && child->priority_ <= head->priority_));
      for (ListHook<T>* at = head->next(); at != head; at = at->next()) {
        const Hook& entry = at->object();
        FREEHOLD_ASSERT(at->is_consistent() && !entry.is_head_);
        FREEHOLD_ASSERT(!Compare{}(entry.key, head->key) && !Compare{}(head->key, entry.key));
      }
      before = head;
    }
  }

  using Hook = MultimapHook<T, Key>;
  // A key's place is at a head of the same key, or else below `parent`.
  struct Place {
    Hook* equal = nullptr;
    Hook* parent = nullptr;
    bool is_left = true;   // is the left child of its parent
    bool is_first = true;  // is the first of all
  };

  [[nodiscard]] Place find(const Key& key) const noexcept {
    Place place;
    Hook* not_after = nullptr;  // the last head passed whose key is not above `key`
    for (Hook* at = root_; at != nullptr; at = place.is_left ? at->left_ : at->right_) {
      place.parent = at;
      place.is_left = Compare{}(key, at->key);
      if (place.is_left) continue;
      not_after = at;
      place.is_first = false;
    }
    if (not_after != nullptr && !Compare{}(not_after->key, key)) place.equal = not_after;
    return place;
  }

  void insert_head(Hook& head, const Place& place) noexcept {
    head.make_ring();
    head.is_head_ = true;
    head.priority_ = next_priority();
    head.parent_ = place.parent;
    head.left_ = head.right_ = nullptr;
    if (place.is_first) first_ = &head;
    if (place.parent == nullptr) {
      root_ = &head;
    } else {
      (place.is_left ? place.parent->left_ : place.parent->right_) = &head;
    }
    while (head.parent_ != nullptr && head.parent_->priority_ < head.priority_) rotate_up(head);
  }
  // The children merge, the one of the higher priority above, and the result takes the head's place.
  void erase_head(Hook& head) noexcept {
    if (first_ == &head) first_ = next(&head);
    Hook** place = &link_to(head);
    Hook *parent = head.parent_, *low = head.left_, *high = head.right_;
    while (low != nullptr && high != nullptr) {
      Hook*& above = low->priority_ > high->priority_ ? low : high;
      *place = above;
      above->parent_ = parent;
      parent = above;
      place = &above == &low ? &parent->right_ : &parent->left_;
      above = *place;
    }
    *place = low != nullptr ? low : high;
    if (*place != nullptr) (*place)->parent_ = parent;
    head.is_head_ = false;
  }
  void replace_head(Hook& head, Hook& by) noexcept {
    link_to(head) = &by;
    by.parent_ = head.parent_;
    by.left_ = head.left_;
    by.right_ = head.right_;
    by.priority_ = head.priority_;
    for (Hook* child : {by.left_, by.right_})
      if (child != nullptr) child->parent_ = &by;
    if (first_ == &head) first_ = &by;
    by.is_head_ = true;
    head.is_head_ = false;
  }
  void take(Hook& head, IntrusiveList<T>& to) noexcept {
    erase_head(head);
    to.splice_ring_back(head);
  }

  // Returns the pointer to a head of the tree.
  [[nodiscard]] Hook*& link_to(const Hook& head) noexcept {
    Hook* const parent = head.parent_;
    if (parent == nullptr) return root_;
    return parent->left_ == &head ? parent->left_ : parent->right_;
  }
  // Pre: the head has a parent, which becomes its child.
  void rotate_up(Hook& head) noexcept {
    Hook& parent = *head.parent_;
    const bool is_left = parent.left_ == &head;
    Hook*& inner = is_left ? head.right_ : head.left_;  // changes sides
    link_to(parent) = &head;
    head.parent_ = parent.parent_;
    parent.parent_ = &head;
    (is_left ? parent.left_ : parent.right_) = inner;
    if (inner != nullptr) inner->parent_ = &parent;
    inner = &parent;
  }
  // The head of the next key; null: there is no higher one.
  [[nodiscard]] static Hook* next(Hook* head) noexcept {
    if (head->right_ != nullptr) {
      for (head = head->right_; head->left_ != nullptr;) head = head->left_;
      return head;
    }
    while (head->parent_ != nullptr && head->parent_->right_ == head) head = head->parent_;
    return head->parent_;
  }
  // xorshift32 (Marsaglia 2003): runs are alike.
  [[nodiscard]] std::uint32_t next_priority() noexcept {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 17;
    random_ ^= random_ << 5;
    return random_;
  }

  Hook* root_ = nullptr;
  Hook* first_ = nullptr;
  std::uint32_t random_ = 0x9E3779B9;
};

}  // namespace freehold::timer
