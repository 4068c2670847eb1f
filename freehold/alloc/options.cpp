// SPDX-License-Identifier: MIT
#include "freehold/alloc/options.hpp"

#include <unistd.h>

#include <cstdlib>
#include <cstring>

// The program's own, where it defines one (freehold.h).
extern "C" [[gnu::weak, gnu::visibility("default")]] const char* freehold_options;

namespace freehold::alloc {
namespace {

// Built by hand: this runs inside the first malloc.
void complain(const char* name, const char* expected) noexcept {
  char line[240] = "freehold: ignoring ";
  std::size_t n = std::strlen(line);
  for (const char* part : {name, ": expected ", expected, "\n"}) {
    const std::size_t length = std::strlen(part);
    if (n + length >= sizeof line) break;
    std::memcpy(line + n, part, length);
    n += length;
  }
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line, n);
}

bool parse_number(const char* text, std::uint64_t& out) noexcept {
  if (*text == '\0') return false;
  std::uint64_t value = 0;
  for (; *text != '\0'; ++text) {
    if (*text < '0' || *text > '9' || value > UINT64_MAX / 10 - 1) return false;
    value = value * 10 + static_cast<std::uint64_t>(*text - '0');
  }
  out = value;
  return true;
}

// Where a value was found: what to call it in a complaint, and its text (null: nowhere).
struct Found {
  const char* name;
  const char* text;
};

constexpr std::size_t kMostBytes = 64;  // of one option in the program's string; longer ones make no sense

// An option: its variable, and its name in the program's string.
struct Name {
  const char* variable;
  const char* compiled;
};
constexpr Name kPurgeDelay{"FREEHOLD_PURGE_DELAY_MS", "purge_delay_ms"};
constexpr Name kHugePages{"FREEHOLD_HUGE_PAGES", "huge_pages"};
constexpr Name kCache{"FREEHOLD_CACHE", "cache"};
constexpr Name kCacheBytes{"FREEHOLD_CACHE_BYTES", "cache_bytes"};
constexpr Name kVerbose{"FREEHOLD_VERBOSE", "verbose"};
constexpr Name kBackgroundThread{"FREEHOLD_BACKGROUND_THREAD", "background_thread"};
constexpr Name kLimitBytes{"FREEHOLD_LIMIT_BYTES", "limit_bytes"};
constexpr Name kPrefault{"FREEHOLD_PREFAULT", "prefault"};
constexpr Name kGuardRate{"FREEHOLD_GUARD_RATE", "guard_rate"};
// Checked mode, as a whole and part by part.
constexpr Name kCheck{"FREEHOLD_CHECK", "check"};
constexpr Name kCheckFamily{"FREEHOLD_CHECK_FAMILY", "check_family"};
constexpr Name kCheckSizes{"FREEHOLD_CHECK_SIZES", "check_sizes"};
constexpr Name kCheckCanary{"FREEHOLD_CHECK_CANARY", "check_canary"};
constexpr Name kCheckFill{"FREEHOLD_CHECK_FILL", "check_fill"};
constexpr Name kCheckQuarantine{"FREEHOLD_CHECK_QUARANTINE", "check_quarantine"};
constexpr Name kCheckRandom{"FREEHOLD_CHECK_RANDOM", "check_random"};
constexpr Name kCheckContents{"FREEHOLD_CHECK_CONTENTS", "check_contents"};
constexpr Name kCheckLeaks{"FREEHOLD_CHECK_LEAKS", "check_leaks"};
constexpr Name kCheckStacks{"FREEHOLD_CHECK_STACKS", "check_stacks"};
constexpr Name kCheckAbort{"FREEHOLD_CHECK_ABORT", "check_abort"};
constexpr Name kCompiled[] = {kPurgeDelay,       kHugePages,   kCache,       kCacheBytes,      kVerbose,
                              kBackgroundThread, kLimitBytes,  kPrefault,    kCheck,           kCheckFamily,
                              kCheckSizes,       kCheckCanary, kCheckFill,   kCheckQuarantine, kCheckRandom,
                              kCheckContents,    kCheckLeaks,  kCheckStacks, kCheckAbort,      kGuardRate};

// Calls visit(name, length of the name, value, length of the value) for each option in the program's string; a part without
// a colon has a null value.
template <class Visit>
void for_each_compiled(Visit visit) noexcept {
  if (&freehold_options == nullptr || freehold_options == nullptr) return;
  for (const char* at = freehold_options; *at != '\0';) {
    const std::size_t length = std::strcspn(at, ",");
    const auto* const colon = static_cast<const char*>(std::memchr(at, ':', length));
    if (length != 0)
      visit(at, colon != nullptr ? static_cast<std::size_t>(colon - at) : length, colon != nullptr ? colon + 1 : nullptr,
            colon != nullptr ? static_cast<std::size_t>(at + length - colon - 1) : 0);
    at += length;
    if (*at == ',') ++at;
  }
}

bool is(const char* text, std::size_t length, const char* word) noexcept {
  return std::strlen(word) == length && std::memcmp(text, word, length) == 0;
}

// The value of an option: the environment's, else the program's. `room` holds a copy of the latter.
[[nodiscard]] Found look_up(Name option, char (&room)[kMostBytes]) noexcept {
  if (const char* const text = ::secure_getenv(option.variable); text != nullptr) return {option.variable, text};
  Found found{option.compiled, nullptr};
  for_each_compiled([&](const char* name, std::size_t name_length, const char* value, std::size_t length) {
    if (value == nullptr || !is(name, name_length, option.compiled) || length >= kMostBytes) return;
    std::memcpy(room, value, length);
    room[length] = '\0';
    found.text = room;
  });
  return found;
}

// Reports what no option can be read from.
void complain_of_unknown_options() noexcept {
  for_each_compiled([](const char* name, std::size_t name_length, const char* value, std::size_t length) {
    if (value != nullptr && length < kMostBytes)
      for (const Name& option : kCompiled)
        if (is(name, name_length, option.compiled)) return;
    char copy[kMostBytes] = {};
    std::memcpy(copy, name, name_length < kMostBytes ? name_length : kMostBytes - 1);
    complain(
        copy,
        "purge_delay_ms, huge_pages, cache, cache_bytes, background_thread, limit_bytes, prefault, guard_rate, verbose, "
        "check or check_..., a colon and "
        "a value, in freehold_options");
  });
}

// Reads a number; where there is none, `value` stays.
void read_number(Found found, std::uint64_t& value) noexcept {
  if (found.text != nullptr && !parse_number(found.text, value)) complain(found.name, "a whole number");
}
void read_number(Name option, std::uint64_t& value) noexcept {
  char room[kMostBytes];
  read_number(look_up(option, room), value);
}

// Reads one of three words; returns its place, or `otherwise`.
template <class E>
E read_word(Name option, const char* const (&words)[3], const char* expected, E otherwise) noexcept {
  char room[kMostBytes];
  const Found found = look_up(option, room);
  if (found.text == nullptr) return otherwise;
  for (std::uint8_t i = 0; i < 3; ++i)
    if (std::strcmp(found.text, words[i]) == 0) return static_cast<E>(i);
  complain(found.name, expected);
  return otherwise;
}

// Reads 0 or 1; where there is neither, `value` stays.
void read_switch(Name option, bool& value) noexcept {
  char room[kMostBytes];
  const Found found = look_up(option, room);
  if (found.text == nullptr) return;
  if ((*found.text != '0' && *found.text != '1') || found.text[1] != '\0') return complain(found.name, "0 or 1");
  value = *found.text == '1';
}

// Reads a byte, or "none" as -1.
void read_byte_or_none(Name option, int& value) noexcept {
  char room[kMostBytes];
  const Found found = look_up(option, room);
  if (found.text == nullptr) return;
  std::uint64_t number = 0;
  if (std::strcmp(found.text, "none") == 0)
    value = -1;
  else if (parse_number(found.text, number) && number <= 255)
    value = static_cast<int>(number);
  else
    complain(found.name, "none, or a number from 0 to 255");
}

[[nodiscard]] check::Settings read_check_settings() noexcept {
  constexpr unsigned kDepthOfLeaks = 8;
  check::Settings s;
  read_switch(kCheck, s.on);
  if (!s.on) return s;
  read_switch(kCheckFamily, s.family);
  read_switch(kCheckSizes, s.sizes);
  read_switch(kCheckCanary, s.canary);
  read_switch(kCheckFill, s.fill);
  read_switch(kCheckRandom, s.random);
  read_switch(kCheckLeaks, s.leaks);
  read_switch(kCheckAbort, s.aborts);
  read_byte_or_none(kCheckContents, s.contents);
  std::uint64_t number = s.quarantine_bytes;
  read_number(kCheckQuarantine, number);
  s.quarantine_bytes = static_cast<std::size_t>(number);
  number = s.leaks ? kDepthOfLeaks : 0;
  read_number(kCheckStacks, number);
  s.stack_depth = static_cast<unsigned>(number < 64 ? number : 64);
  return s;
}

// Only from the environment: for `freehold run`.
void read_variable(const char* name, std::uint64_t& value) noexcept {
  read_number(Found{name, ::secure_getenv(name)}, value);
}

}  // namespace

Options read_options() noexcept {
  Options o;
  complain_of_unknown_options();
  read_number(kPurgeDelay, o.purge_delay_ms);
  o.huge_pages = read_word(kHugePages, {"off", "auto", "on"}, "off, auto or on", o.huge_pages);
  o.cache = read_word(kCache, {"thread", "cpu", "auto"}, "thread, cpu or auto", o.cache);
  std::uint64_t number = 0;
  read_number(kCacheBytes, number);
  o.cache_bytes = static_cast<std::size_t>(number);
  o.background_thread = read_word(kBackgroundThread, {"off", "auto", "on"}, "off, auto or on", o.background_thread);
  read_number(kLimitBytes, o.limit_bytes);
  read_number(kGuardRate, o.guard_rate);
  number = 0;
  read_number(kPrefault, number);
  o.prefault = number != 0;
  number = 0;
  read_number(kVerbose, number);
  o.verbose = number != 0;
  o.check = read_check_settings();
  number = 0;
  read_variable("FREEHOLD_STATS_PID", number);
  if (number != 0 && number == static_cast<std::uint64_t>(::getpid())) {
    read_variable("FREEHOLD_STATS_FD", number);
    o.stats_fd = static_cast<int>(number);
  }
  return o;
}

bool options_want_call_stacks() noexcept {
  char room[kMostBytes];
  return look_up(kGuardRate, room).text != nullptr || look_up(kCheckStacks, room).text != nullptr ||
         look_up(kCheckLeaks, room).text != nullptr;
}

}  // namespace freehold::alloc
