// SPDX-License-Identifier: MIT
#include "freehold/alloc/process/options.hpp"

#include "freehold/os/system_call.hpp"
#include "freehold/profile/profiler.hpp"

namespace freehold::alloc {
namespace {

#define FREEHOLD_NAME(name, kind, value, shown, effect) {#name, kind{}},
constexpr os::OptionName kNames[] = {FREEHOLD_OPTIONS(FREEHOLD_NAME)};
#undef FREEHOLD_NAME

}  // namespace

Options read_options() noexcept {
  os::complain_of_unknown_options(kNames, check::setting_names(), " or check_..., a colon and a value, in freehold_options");
  Options o;
  const os::OptionName* at = kNames;
#define FREEHOLD_READ(name, kind, value, shown, effect) kind::read(*at++, o.name);
  FREEHOLD_OPTIONS(FREEHOLD_READ)
#undef FREEHOLD_READ
  if (o.profile == 1) o.profile = profile::kDefaultMean;
  if (o.profile != 0 && o.check.on) {
    os::complain_of_option("FREEHOLD_PROFILE", "no FREEHOLD_CHECK beside it");
    o.profile = 0;
  }
  if (o.stats_pid == 0 || o.stats_pid != os::kernel::getpid()) o.stats_fd = -1;
  return o;
}

bool options_want_call_stacks() noexcept {
  return os::is_positive_number("guard_rate") || os::is_positive_number("profile") || check::settings().stacks != 0;
}

}  // namespace freehold::alloc
