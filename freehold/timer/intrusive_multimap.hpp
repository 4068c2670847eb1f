// SPDX-License-Identifier: MIT
// An ordered multimap of objects that bring their links along: no allocation on insert or erase, and all entries of one key
// are taken in O(1) after the look-up. "Practical testing 30" wished for it. Boost.Intrusive's set gives the ordered part, a
// red-black tree; none of its multimaps can hand out k equal keys without unlinking, and rebalancing, k times. So the tree
// has one node for each distinct key, its first entry; the others stand behind that in a ring. When the first leaves, the
// next takes its place in the tree, as it stands there (no rebalancing); to take all, one node leaves the tree and the ring
// is handed out as it is.
//
//   Invariant: the heads, and only they, are in the tree, in strictly ascending order of keys; every entry of a head's ring
//   has the head's key, the oldest first.
//
// Threads: one at a time. Cost: insert O(log of the number of distinct keys); erase of one among several and take_all O(1),
// else O(log) at worst and O(1) amortised.
#pragma once
#include <boost/intrusive/set.hpp>
#include <functional>

#include "freehold/base/check.hpp"
#include "freehold/timer/intrusive_list.hpp"

namespace freehold::timer {

/// The links and the key of an object: `struct Job : MultimapHook<Job, Time> { … };`.
/// @tparam T    the type of the objects
/// @tparam Key  the type of the keys
template <class T, class Key>
class MultimapHook : public ListHook<T>,
                     public boost::intrusive::set_base_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>,
                                                            boost::intrusive::optimize_size<true>> {
 public:
  using ListHook<T>::is_linked;
  using ListHook<T>::unlink;
  /// May change while the object is not linked.
  Key key{};

 private:
  template <class, class, class>
  friend class IntrusiveMultimap;
  bool is_head_ = false;
};

/// An ordered multimap that owns nothing; an object must leave before it ends.
/// @tparam T        the type of the objects, derived from MultimapHook<T, Key>
/// @tparam Key      the type of the keys
/// @tparam Compare  their order
template <class T, class Key, class Compare = std::less<Key>>
class IntrusiveMultimap {
 public:
  /// Whether it has no entry.
  [[nodiscard]] bool empty() const noexcept { return heads_.empty(); }
  /// The oldest entry of the lowest key. Pre: not empty.
  [[nodiscard]] T& front() noexcept { return *heads_.begin(); }
  /// The same.
  [[nodiscard]] const T& front() const noexcept { return *heads_.begin(); }

  /// Inserts an entry behind those of the same key.
  /// @param entry  is linked nowhere
  void insert(T& entry) noexcept {
    typename Heads::insert_commit_data place;
    const auto [equal, is_new] = heads_.insert_check(entry.key, Compare{}, place);
    hook(entry).is_head_ = is_new;
    if (is_new) {
      hook(entry).make_ring();
      heads_.insert_commit(entry, place);
    } else {
      hook(entry).link_before(*equal);
    }
  }

  /// Takes an entry out.
  /// @param entry  is in this map, or in the list to which it was taken
  void erase(T& entry) noexcept {
    if (hook(entry).is_head_) {
      if (hook(entry).is_alone()) {
        heads_.erase(heads_.iterator_to(entry));
      } else {
        T& next = hook(entry).next()->object();
        heads_.replace_node(heads_.iterator_to(entry), next);
        hook(next).is_head_ = true;
      }
      hook(entry).is_head_ = false;
    }
    hook(entry).unlink();
  }

  /// Moves all entries of a key to the end of a list, the oldest first.
  /// @param key  the key
  /// @param to   the list
  void take_all(const Key& key, IntrusiveList<T>& to) noexcept {
    if (const auto found = heads_.find(key, Compare{}); found != heads_.end()) take(found, to);
  }
  /// The same for the lowest key. Pre: not empty.
  /// @param to  the list
  void take_front(IntrusiveList<T>& to) noexcept { take(heads_.begin(), to); }

  /// Calls f(const T&) for each entry, in the order of keys, and of insertion among equal ones. Cost: O(n).
  /// @param f  what is called
  template <class F>
  void for_each(F&& f) const {
    for (const T& head : heads_) {
      f(head);
      for (const ListHook<T>* at = hook(head).next(); at != &head; at = at->next()) f(static_cast<const T&>(*at));
    }
  }
  /// Ends the process in a checked build if the invariant does not hold. Cost: O(n).
  void check_invariants() const {
    const T* before = nullptr;
    for (const T& head : heads_) {
      FREEHOLD_ASSERT(hook(head).is_head_);
      FREEHOLD_ASSERT(before == nullptr || Compare{}(before->key, head.key));
      FREEHOLD_ASSERT(hook(head).is_consistent());
      for (ListHook<T>* at = hook(head).next(); at != &head; at = at->next()) {
        FREEHOLD_ASSERT(at->is_consistent() && !hook(at->object()).is_head_);
        FREEHOLD_ASSERT(!Compare{}(at->object().key, head.key) && !Compare{}(head.key, at->object().key));
      }
      before = &head;
    }
  }

 private:
  struct KeyOf {
    using type = Key;
    const Key& operator()(const T& entry) const noexcept { return entry.key; }
  };
  using Heads = boost::intrusive::set<T, boost::intrusive::key_of_value<KeyOf>, boost::intrusive::compare<Compare>,
                                      boost::intrusive::constant_time_size<false>>;

  [[nodiscard]] static MultimapHook<T, Key>& hook(T& entry) noexcept { return entry; }
  [[nodiscard]] static const MultimapHook<T, Key>& hook(const T& entry) noexcept { return entry; }

  void take(typename Heads::iterator head, IntrusiveList<T>& to) noexcept {
    T& first = *head;
    heads_.erase(head);
    hook(first).is_head_ = false;
    to.splice_ring_back(first);
  }

  Heads heads_;
};

}  // namespace freehold::timer
