// SPDX-License-Identifier: MIT
// A doubly linked list of slabs, through two links that each slab has for it. Externally locked. Cost: O(1).
#pragma once

namespace freehold::heap {

// `Next` and `Previous` are members of S, an A::var<S*> each.
template <class S, auto Next, auto Previous>
class SlabList {
 public:
  // The newest one; null: the list is empty.
  [[nodiscard]] S* first() const noexcept { return first_.load(); }
  [[nodiscard]] static S* after(const S& slab) noexcept { return (slab.*Next).load(); }

  void push(S& slab) noexcept {
    S* const following = first();
    (slab.*Next).store(following);
    (slab.*Previous).store(nullptr);
    if (following != nullptr) (following->*Previous).store(&slab);
    first_.store(&slab);
  }
  void remove(S& slab) noexcept {
    S* const before = (slab.*Previous).load();
    S* const behind = (slab.*Next).load();
    before != nullptr ? (before->*Next).store(behind) : first_.store(behind);
    if (behind != nullptr) (behind->*Previous).store(before);
  }
  void clear() noexcept { first_.store(nullptr); }

 private:
  typename S::template var<S*> first_{nullptr};
};

}  // namespace freehold::heap
