// SPDX-License-Identifier: MIT
#include "freehold/check/settings.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iterator>

#include "freehold/base/check.hpp"
#include "freehold/os/program_options.hpp"
#include "freehold/sync/lock.hpp"

namespace freehold::check {
namespace {

constexpr os::OptionName kOn{"FREEHOLD_CHECK", "check"};
constexpr os::OptionName kFamily{"FREEHOLD_CHECK_FAMILY", "check_family"};
constexpr os::OptionName kSizes{"FREEHOLD_CHECK_SIZES", "check_sizes"};
constexpr os::OptionName kCanary{"FREEHOLD_CHECK_CANARY", "check_canary"};
constexpr os::OptionName kFill{"FREEHOLD_CHECK_FILL", "check_fill"};
constexpr os::OptionName kQuarantine{"FREEHOLD_CHECK_QUARANTINE", "check_quarantine"};
constexpr os::OptionName kRandom{"FREEHOLD_CHECK_RANDOM", "check_random"};
constexpr os::OptionName kContents{"FREEHOLD_CHECK_CONTENTS", "check_contents"};
constexpr os::OptionName kLeaks{"FREEHOLD_CHECK_LEAKS", "check_leaks"};
constexpr os::OptionName kStacks{"FREEHOLD_CHECK_STACKS", "check_stacks"};
constexpr os::OptionName kAbort{"FREEHOLD_CHECK_ABORT", "check_abort"};
constexpr os::OptionName kAll[] = {kOn,     kFamily,   kSizes, kCanary, kFill, kQuarantine,
                                   kRandom, kContents, kLeaks, kStacks, kAbort};

constexpr unsigned kDepthOfLeaks = 8, kMostDepth = 64;

void read(Settings& s) noexcept {
  os::read_switch(kOn, s.on);
  os::read_switch(kFamily, s.family);
  os::read_switch(kSizes, s.sizes);
  os::read_switch(kCanary, s.canary);
  os::read_switch(kFill, s.fill);
  os::read_switch(kRandom, s.random);
  os::read_switch(kLeaks, s.leaks);
  os::read_switch(kAbort, s.aborts);
  os::read_byte_or_none(kContents, s.contents);
  std::uint64_t number = s.quarantine_bytes;
  os::read_number(kQuarantine, number);
  s.quarantine_bytes = static_cast<std::size_t>(number);
  number = s.leaks ? kDepthOfLeaks : 0;
  os::read_number(kStacks, number);
  s.stack_depth = static_cast<unsigned>(std::min<std::uint64_t>(number, kMostDepth));
  // The others were read even so: a value that is wrong is said.
  if (s.on)
    base::set_fatal_returns(!s.aborts);
  else
    s = {};
}

constinit Settings g_settings;
constinit std::atomic<bool> g_is_read{false};
constinit sync::Mutex<sync::NativeAtomics> g_lock;

}  // namespace

// Not a static that is initialised once, whose guard is libstdc++'s.
const Settings& settings() noexcept {
  if (!g_is_read.load(std::memory_order_acquire)) {  // acquire: pairs with the release below, of what was read
    const sync::Guard guard(g_lock);
    if (!g_is_read.load(std::memory_order_relaxed)) read(g_settings);  // relaxed: under the lock
    g_is_read.store(true, std::memory_order_release);
  }
  return g_settings;
}

bool is_setting(const char* name, std::size_t length) noexcept {
  return std::any_of(std::begin(kAll), std::end(kAll),
                     [=](const os::OptionName& option) { return os::is_named(option, name, length); });
}

}  // namespace freehold::check
