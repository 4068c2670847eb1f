// SPDX-License-Identifier: MIT
#include "freehold/alloc/options.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "freehold/os/program_options.hpp"
#include "freehold/profile/profiler.hpp"

namespace freehold::alloc {
namespace {

using Name = os::OptionName;

constexpr Name kPurgeDelay{"FREEHOLD_PURGE_DELAY_MS", "purge_delay_ms"};
constexpr Name kHugePages{"FREEHOLD_HUGE_PAGES", "huge_pages"};
constexpr Name kCache{"FREEHOLD_CACHE", "cache"};
constexpr Name kCacheBytes{"FREEHOLD_CACHE_BYTES", "cache_bytes"};
constexpr Name kVerbose{"FREEHOLD_VERBOSE", "verbose"};
constexpr Name kBackgroundThread{"FREEHOLD_BACKGROUND_THREAD", "background_thread"};
constexpr Name kLimitBytes{"FREEHOLD_LIMIT_BYTES", "limit_bytes"};
constexpr Name kLimitWarning{"FREEHOLD_LIMIT_WARNING", "limit_warning"};
constexpr Name kPrefault{"FREEHOLD_PREFAULT", "prefault"};
constexpr Name kGuardRate{"FREEHOLD_GUARD_RATE", "guard_rate"};
constexpr Name kLive{"FREEHOLD_LIVE", "live"};
constexpr Name kProfile{"FREEHOLD_PROFILE", "profile"};
constexpr Name kCompiled[] = {kPurgeDelay, kHugePages, kCache,     kCacheBytes, kVerbose, kBackgroundThread,
                              kLimitBytes, kPrefault,  kGuardRate, kLive,       kProfile, kLimitWarning};
// Only from the environment: for `freehold run`.
constexpr Name kStatsPid{"FREEHOLD_STATS_PID", nullptr};
constexpr Name kStatsFd{"FREEHOLD_STATS_FD", nullptr};
// Paths are longer than the values of a program's string.
constexpr Name kCgroup{"FREEHOLD_CGROUP", nullptr};
constexpr Name kProfileFile{"FREEHOLD_PROFILE_FILE", nullptr};

[[nodiscard]] bool is_known(const char* name, std::size_t length) noexcept {
  return check::is_setting(name, length) || std::any_of(std::begin(kCompiled), std::end(kCompiled), [=](const Name& option) {
           return os::is_named(option, name, length);
         });
}

// One of three words, as a value of E; or `otherwise`.
template <class E>
E read_word(const Name& option, const std::array<const char*, 3>& words, const char* expected, E otherwise) noexcept {
  return static_cast<E>(os::read_word(option, words, expected, static_cast<unsigned>(otherwise)));
}

void read_profile(Options& o) noexcept {
  os::read_number(kProfile, o.profile_bytes);
  if (o.profile_bytes == 1) o.profile_bytes = profile::kDefaultMean;
  if (o.profile_bytes != 0 && o.check.on) {
    os::complain_of_option("FREEHOLD_PROFILE", "no FREEHOLD_CHECK beside it");
    o.profile_bytes = 0;
  }
  os::read_path(kProfileFile, o.profile_file, sizeof o.profile_file);
}

}  // namespace

Options read_options() noexcept {
  using os::read_number;
  Options o;
  os::complain_of_unknown_options(is_known,
                                  "purge_delay_ms, huge_pages, cache, cache_bytes, background_thread, limit_bytes, "
                                  "limit_warning, prefault, guard_rate, live, profile, verbose, "
                                  "check or check_..., a colon and a value, in freehold_options");
  read_number(kPurgeDelay, o.purge_delay_ms);
  o.huge_pages = read_word(kHugePages, {"off", "auto", "on"}, "off, auto or on", o.huge_pages);
  o.cache = read_word(kCache, {"thread", "cpu", "auto"}, "thread, cpu or auto", o.cache);
  std::uint64_t number = 0;
  read_number(kCacheBytes, number);
  o.cache_bytes = static_cast<std::size_t>(number);
  o.background_thread = read_word(kBackgroundThread, {"off", "auto", "on"}, "off, auto or on", o.background_thread);
  read_number(kLimitBytes, o.limit_bytes);
  os::read_switch(kLimitWarning, o.limit_warning);
  os::read_path(kCgroup, o.cgroup, sizeof o.cgroup);
  read_number(kGuardRate, o.guard_rate);
  number = 0;
  read_number(kPrefault, number);
  o.prefault = number != 0;
  number = 0;
  read_number(kVerbose, number);
  o.verbose = number != 0;
  number = 0;
  read_number(kLive, number);
  o.live = number != 0;
  o.check = check::settings();
  read_profile(o);
  number = 0;
  read_number(kStatsPid, number);
  std::uint64_t file = 0;
  read_number(kStatsFd, file);  // in other processes, too: a value that is wrong is said
  if (number != 0 && number == static_cast<std::uint64_t>(::getpid())) o.stats_fd = static_cast<int>(file);
  return o;
}

bool options_want_call_stacks() noexcept {
  return os::is_positive_number(kGuardRate) || os::is_positive_number(kProfile) || check::settings().stack_depth != 0;
}

}  // namespace freehold::alloc
