// SPDX-License-Identifier: MIT
#include "freehold/check/settings.hpp"

#include <algorithm>
#include <atomic>

#include "freehold/base/check.hpp"
#include "freehold/sync/lock.hpp"

namespace freehold::check {
namespace {

#define FREEHOLD_NAME(name, kind, value, shown, effect) {"check_" #name, kind{}},
constexpr os::OptionName kNames[] = {FREEHOLD_CHECK_OPTIONS(FREEHOLD_NAME)};
#undef FREEHOLD_NAME

constexpr int kDepthOfLeaks = 8, kMostDepth = 64;

void read(Settings& s) noexcept {
  os::read_switch("check", s.on);
  const os::OptionName* at = kNames;
  s.stacks = -1;  // which no text gives
#define FREEHOLD_READ(name, kind, value, shown, effect) kind::read(*at++, s.name);
  FREEHOLD_CHECK_OPTIONS(FREEHOLD_READ)
#undef FREEHOLD_READ
  if (s.stacks < 0) s.stacks = s.leaks ? kDepthOfLeaks : 0;
  s.stacks = std::min(s.stacks, kMostDepth);
  // The others were read even so: a value that is wrong is said.
  if (s.on)
    base::set_fatal_returns(!s.abort);
  else
    s = {};
}

constinit Settings g_settings;
constinit std::atomic<bool> g_is_read{false};
constinit sync::Mutex<sync::NativeAtomics> g_lock;

}  // namespace

// A static that is initialised once would need libstdc++'s guard.
const Settings& settings() noexcept {
  if (!g_is_read.load(std::memory_order_acquire)) {  // acquire: pairs with the release below, of what was read
    const sync::Guard guard(g_lock);
    if (!g_is_read.load(std::memory_order_relaxed)) read(g_settings);  // relaxed: under the lock
    g_is_read.store(true, std::memory_order_release);
  }
  return g_settings;
}

std::span<const os::OptionName> setting_names() noexcept { return kNames; }

}  // namespace freehold::check
