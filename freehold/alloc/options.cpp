#include "freehold/alloc/options.hpp"

#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace freehold::alloc {
namespace {

// Built by hand: this runs inside the first malloc.
void complain(const char* name, const char* expected) noexcept {
  char line[160] = "freehold: ignoring ";
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

// Reads a number; a missing variable leaves `value` alone.
void read_number(const char* name, std::uint64_t& value) noexcept {
  const char* text = ::secure_getenv(name);
  if (text != nullptr && !parse_number(text, value)) complain(name, "a whole number");
}

// Reads one of three words; returns its place, or `otherwise`.
template <class E>
E read_word(const char* name, const char* const (&words)[3], const char* expected, E otherwise) noexcept {
  const char* text = ::secure_getenv(name);
  if (text == nullptr) return otherwise;
  for (std::uint8_t i = 0; i < 3; ++i)
    if (std::strcmp(text, words[i]) == 0) return static_cast<E>(i);
  complain(name, expected);
  return otherwise;
}

}  // namespace

Options read_options() noexcept {
  Options o;
  read_number("FREEHOLD_PURGE_DELAY_MS", o.purge_delay_ms);
  o.huge_pages = read_word("FREEHOLD_HUGE_PAGES", {"off", "auto", "on"}, "off, auto or on", o.huge_pages);
  o.cache = read_word("FREEHOLD_CACHE", {"thread", "cpu", "auto"}, "thread, cpu or auto", o.cache);
  std::uint64_t number = 0;
  read_number("FREEHOLD_CACHE_BYTES", number);
  o.cache_bytes = static_cast<std::size_t>(number);
  number = 0;
  read_number("FREEHOLD_VERBOSE", number);
  o.verbose = number != 0;
  number = 0;
  read_number("FREEHOLD_STATS_PID", number);
  if (number != 0 && number == static_cast<std::uint64_t>(::getpid())) {
    read_number("FREEHOLD_STATS_FD", number);
    o.stats_fd = static_cast<int>(number);
  }
  return o;
}

}  // namespace freehold::alloc
