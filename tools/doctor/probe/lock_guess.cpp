// SPDX-License-Identifier: MIT
#include "tools/doctor/probe/lock_guess.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "tools/doctor/probe/recorder.hpp"

namespace freehold::doctor::probe {
namespace {

constexpr unsigned kAddressBits = 10;
constexpr std::uint32_t kWaitsToJudge = 3;
constexpr std::size_t kUnreleased = 4;  // locks that a thread had to wait for and holds

// An address, and what was seen of it. Others of the same hash take the place over and are counted from the beginning.
// relaxed throughout: counts, which nothing is published by; one that is lost is one sample judged otherwise.
struct Place {
  std::atomic<const void*> address{nullptr};
  std::atomic<std::uint32_t> waits{0}, releases{0};
};
constinit std::array<Place, std::size_t{1} << kAddressBits> g_places{};
constinit thread_local std::array<const void*, kUnreleased> t_unreleased{};
constinit thread_local unsigned t_next_unreleased = 0;

[[nodiscard]] Place& place_at(const void* address) noexcept {
  Place& place = g_places[mix(reinterpret_cast<std::uintptr_t>(address) >> 2) >> (64 - kAddressBits)];
  if (place.address.load(std::memory_order_relaxed) != address) {
    place.address.store(address, std::memory_order_relaxed);
    place.waits.store(0, std::memory_order_relaxed);
    place.releases.store(0, std::memory_order_relaxed);
  }
  return place;
}

}  // namespace

// A thread that waits again before it has released anything did not get the lock: it still waits for the same one.
bool waited_for_lock(const void* address) noexcept {
  Place& place = place_at(address);
  if (std::ranges::find(t_unreleased, address) == t_unreleased.end()) {
    place.waits.fetch_add(1, std::memory_order_relaxed);
    t_unreleased[t_next_unreleased++ % kUnreleased] = address;
  }
  const std::uint32_t waits = place.waits.load(std::memory_order_relaxed);
  return waits >= kWaitsToJudge && 2 * place.releases.load(std::memory_order_relaxed) >= waits;
}

void released(const void* address) noexcept {
  for (const void*& known : t_unreleased) {
    if (known != address) continue;
    known = nullptr;
    place_at(address).releases.fetch_add(1, std::memory_order_relaxed);
    return;
  }
}

}  // namespace freehold::doctor::probe
