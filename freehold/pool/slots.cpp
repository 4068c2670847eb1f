// SPDX-License-Identifier: MIT
#include "freehold/pool/slots.hpp"

#include <memory>

#include "freehold/base/poison.hpp"
#include "freehold/pool/checked_slots.hpp"
#include "freehold/sync/lock.hpp"

namespace freehold::pool {

// Names what looks at the slots: checked mode, or bits of a checked build and memcheck.
struct Slots::Looks {
  std::unique_ptr<CheckedSlots> checked;  // null but in checked mode
  std::unique_ptr<AllocatedSlots> bits;
};

void Slots::begin_looks(const SlotRoom& room, const PoolShape& shape, bool each) {
  if (!room.is_checked() && !each && !base::under_memcheck()) return;
  auto looks = std::make_unique<Looks>();
  looks->checked = CheckedSlots::make(room, shape, false);
  if (each && looks->checked == nullptr) looks->bits = std::make_unique<AllocatedSlots>(count_);
  if (looks->checked == nullptr && base::under_memcheck()) base::memcheck_poison(start_, count_ * bytes_);
  looks_ = looks.release();
}

void Slots::end_looks() noexcept {
  if (CheckedSlots* const checked = looks_->checked.get(); checked != nullptr) {
    const auto for_each = [this](auto&& f) {
      for (std::size_t slot = 0; slot < count_; ++slot) f(address(slot));
    };
    (void)checked->look_at_all(for_each);
    checked->list_live(for_each);
  } else if (base::under_memcheck()) {
    base::memcheck_unpoison(start_, count_ * bytes_);
  }
  delete looks_;
}

void Slots::look_at_allocated(void* mine) const noexcept {
  if (CheckedSlots* const checked = looks_->checked.get(); checked != nullptr) {
    const sync::Guard guard(checked->lock());
    (void)checked->on_allocate(mine);
    return;
  }
  if (looks_->bits != nullptr) looks_->bits->on_allocate(number(mine), mine);
  if (base::under_memcheck()) base::memcheck_on_allocate(mine, bytes_);
}

bool Slots::look_at_freed(const void* address) const noexcept {
  CheckedSlots* const checked = looks_->checked.get();
  // memcheck reports foreign addresses itself.
  if ((checked != nullptr || looks_->bits != nullptr) && !contains(address)) {
    base::fatal(is_inside(address) ? base::HeapError::kInteriorPointer : base::HeapError::kForeignPointer, address);
    return false;
  }
  if (checked != nullptr) {
    const sync::Guard guard(checked->lock());
    return checked->on_free(const_cast<void*>(address));
  }
  if (looks_->bits != nullptr && !looks_->bits->on_free(number(address), address)) return false;
  if (base::under_memcheck()) base::memcheck_on_free(address);
  return true;
}

}  // namespace freehold::pool
