// SPDX-License-Identifier: MIT
#include "freehold/check/call_stacks.hpp"

#include <algorithm>
#include <atomic>

#include "freehold/check/report.hpp"
#include "freehold/check/stack_depot.hpp"
#include "freehold/os/call_stack.hpp"
#include "freehold/os/pages.hpp"
#include "freehold/sync/lock.hpp"

namespace freehold::check {
namespace {

constexpr std::size_t kPlaces = std::size_t{1} << 18;  // different stacks
constexpr std::size_t kWords = kMostStackNumbers;      // 64 MiB of addresses, of which what is used becomes resident

constinit StackDepot<sync::NativeAtomics> g_depot;
constinit sync::Mutex<sync::NativeAtomics> g_lock;

}  // namespace

constinit std::atomic<unsigned> call_stacks::g_depth{0};
using call_stacks::g_depth;

void keep_call_stacks(unsigned depth) noexcept {
  const sync::Guard guard(g_lock);
  static constinit bool mapped = false;
  os::Pages pages;
  if (!mapped) {
    mapped = g_depot.init(pages, kPlaces, kWords);
    prepare_stack_requests();
  }
  if (!mapped) return;
  g_depth.store(std::min(depth, os::kMostFrames), std::memory_order_release);  // publishes the depot
}

std::uint32_t call_stacks::note(unsigned depth) noexcept {
  constexpr unsigned kMostOwn = 6;
  void* addresses[os::kMostFrames];
  const unsigned count = os::capture_call_stack(addresses, std::min(depth + kMostOwn, os::kMostFrames), 0);
  const unsigned own = os::own_frames(addresses, count);
  return g_depot.insert(addresses + own, std::min(count - own, depth));
}

bool keeps_call_stacks() noexcept { return g_depth.load(std::memory_order_acquire) != 0; }

unsigned read_call_stack(std::uint32_t number, void** addresses, unsigned most) noexcept {
  return !keeps_call_stacks() || number == kBeforeStacks ? 0 : g_depot.read(number, addresses, most);
}

LiveCallStacks live_call_stacks() noexcept {
  if (!keeps_call_stacks()) return {};
  return {reinterpret_cast<std::uintptr_t>(g_depot.words()), reinterpret_cast<std::uintptr_t>(&g_depot.used())};
}

void detail_call_stack(const char* title, std::uint32_t number) noexcept {
  if (!keeps_call_stacks()) return;
  detail(title);
  void* addresses[os::kMostFrames];
  detail_stack(addresses, read_call_stack(number, addresses, os::kMostFrames));
}

}  // namespace freehold::check
