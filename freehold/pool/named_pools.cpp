// SPDX-License-Identifier: MIT
#include "freehold/pool/named_pools.hpp"

#include <pthread.h>

#include "freehold/base/member_offset.hpp"
#include "freehold/sync/live_list.hpp"
#include "freehold/sync/lock.hpp"

namespace freehold::pool {

struct NamedPools {
  sync::LiveListDirectory directory;
  sync::Mutex<sync::NativeAtomics> lock;
  sync::ChangeCount<sync::NativeAtomics> changes;
  PoolRegistration* pools = nullptr;
  bool is_ready = false;

  // Called with the first pool. pthread_atfork allocates: no lock is held. Nothing is allocated under the lock, so its place
  // among other handlers of fork does not matter.
  void begin() noexcept;
  void add(PoolRegistration& place) noexcept {
    const sync::Guard guard(lock);
    const sync::Change change(changes);
    place.next_ = pools;
    if (pools != nullptr) pools->previous_ = &place;
    pools = &place;
  }
  void remove(PoolRegistration& place) noexcept {
    const sync::Guard guard(lock);
    const sync::Change change(changes);
    (place.previous_ != nullptr ? place.previous_->next_ : pools) = place.next_;
    if (place.next_ != nullptr) place.next_->previous_ = place.previous_;
  }
  void describe() noexcept {
    directory.kind = sync::LiveList::kPools;
    directory.first = reinterpret_cast<std::uintptr_t>(&pools);
    directory.changes = reinterpret_cast<std::uintptr_t>(&changes.number());
    directory.next = static_cast<std::uint32_t>(base::member_offset<PoolRegistration>(&PoolRegistration::next_));
    directory.data = static_cast<std::uint32_t>(base::member_offset<PoolRegistration>(&PoolRegistration::pool_));
    directory.data_bytes = sizeof(LivePool);
    sync::publish(directory);
  }
};

namespace {
constinit NamedPools g_pools{};
}  // namespace

void NamedPools::begin() noexcept {
  {
    const sync::Guard guard(lock);
    if (is_ready) return;
    is_ready = true;
    describe();
  }
  const auto leave = [] { g_pools.lock.unlock(); };
  pthread_atfork([] { g_pools.lock.lock(); }, leave, leave);
}

PoolRegistration::PoolRegistration(const char* name, const LivePool& pool) noexcept : pool_(pool) {
  const bool is_named = name != nullptr && *name != '\0';
  pool_.name = is_named ? reinterpret_cast<std::uintptr_t>(name) : 0;
  if (!is_named) return;
  g_pools.begin();
  g_pools.add(*this);
}

PoolRegistration::~PoolRegistration() {
  // The analyzer believes that the union of member_offset() ends its member.
  // NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult)
  if (pool_.name != 0) g_pools.remove(*this);
}

}  // namespace freehold::pool
