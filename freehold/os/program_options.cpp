// SPDX-License-Identifier: MIT
#include "freehold/os/program_options.hpp"

#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include "freehold/os/libc.hpp"
#include "freehold/os/system_call.hpp"

// The program's own, where it defines one (freehold/malloc.h).
extern "C" [[gnu::weak, gnu::visibility("default")]] const char* freehold_options;

namespace freehold::os {
namespace {

// As libc's secure_getenv(), which a program may replace.
[[nodiscard]] const char* environment_value(const char* name) noexcept {
  if (environ == nullptr || Libc::getauxval(AT_SECURE) != 0) return nullptr;
  const std::size_t length = std::strlen(name);
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (std::strncmp(*entry, name, length) == 0 && (*entry)[length] == '=') return *entry + length + 1;
  return nullptr;
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

constexpr std::size_t kMostBytes = 64;  // longest option in the program's string; longer ones make no sense

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

[[nodiscard]] bool is_named(const OptionName& option, const char* name, std::size_t length) noexcept {
  return !option.environment_only && std::strlen(option.name) == length && std::memcmp(option.name, name, length) == 0;
}

// Describes where a value was found: its name in complaints, and its text (null: nowhere).
struct Found {
  const char* name;
  const char* text;
};

// The value of an option: the environment's, else the program's. `room` holds a copy of the latter.
[[nodiscard]] Found look_up(const OptionName& option, char (&room)[kMostBytes]) noexcept {
  if (const char* const text = environment_value(option.variable); text != nullptr) return {option.variable, text};
  Found found{option.name, nullptr};
  for_each_compiled([&](const char* name, std::size_t name_length, const char* value, std::size_t length) {
    if (value == nullptr || !is_named(option, name, name_length) || length >= kMostBytes) return;
    std::memcpy(room, value, length);
    room[length] = '\0';
    found.text = room;
  });
  return found;
}

// Has parse(text) take the option's value; complains if that is false.
template <class Parse>
void read(const OptionName& option, const char* expected, Parse parse) noexcept {
  char room[kMostBytes];
  const Found found = look_up(option, room);
  if (found.text != nullptr && !parse(found.text)) complain_of_option(found.name, expected);
}

}  // namespace

// Built by hand: this runs inside the first malloc.
void complain_of_option(const char* name, const char* expected) noexcept {
  char line[400] = "freehold: ignoring ";
  std::size_t n = std::strlen(line);
  for (const char* part : {name, ": expected ", expected, "\n"}) {
    const std::size_t length = std::strlen(part);
    if (n + length >= sizeof line) break;
    std::memcpy(line + n, part, length);
    n += length;
  }
  [[maybe_unused]] const auto written = kernel::write(STDERR_FILENO, line, n);
}

void complain_of_unknown_options(std::span<const OptionName> options, std::span<const OptionName> others,
                                 const char* ending) noexcept {
  for_each_compiled([=](const char* name, std::size_t name_length, const char* value, std::size_t length) {
    const auto is_it = [=](const OptionName& option) { return is_named(option, name, name_length); };
    if (value != nullptr && length < kMostBytes &&
        (std::ranges::any_of(options, is_it) || std::ranges::any_of(others, is_it)))
      return;
    char copy[kMostBytes] = {}, list[300];
    std::memcpy(copy, name, name_length < kMostBytes ? name_length : kMostBytes - 1);
    list[0] = '\0';
    for (const OptionName& option : options) {
      if (option.environment_only || std::strlen(list) + sizeof option.variable + std::strlen(ending) > sizeof list)
        continue;
      if (list[0] != '\0') std::strcat(list, ", ");
      std::strcat(list, option.name);
    }
    complain_of_option(copy, std::strcat(list, ending));
  });
}

bool is_positive_number(const OptionName& option) noexcept {
  char room[kMostBytes];
  const Found found = look_up(option, room);
  std::uint64_t number = 0;
  return found.text != nullptr && parse_number(found.text, number) && number != 0;
}

void read_number(const OptionName& option, std::uint64_t& value) noexcept {
  read(option, "a whole number", [&](const char* text) { return parse_number(text, value); });
}

void read_int(const OptionName& option, int& value) noexcept {
  std::uint64_t number = UINT64_MAX;  // which no text gives
  read_number(option, number);
  if (number != UINT64_MAX) value = static_cast<int>(std::min<std::uint64_t>(number, INT_MAX));
}

void read_switch(const OptionName& option, bool& value) noexcept {
  read(option, "0 or 1", [&](const char* text) {
    if ((*text != '0' && *text != '1') || text[1] != '\0') return false;
    value = *text == '1';
    return true;
  });
}

void read_byte_or_none(const OptionName& option, int& value) noexcept {
  read(option, "none, or a number from 0 to 255", [&](const char* text) {
    std::uint64_t number = 0;
    const bool is_none = std::strcmp(text, "none") == 0;
    if (!is_none && (!parse_number(text, number) || number > 255)) return false;
    value = is_none ? -1 : static_cast<int>(number);
    return true;
  });
}

void read_path(const OptionName& option, char* path, std::size_t room) noexcept {
  read(option, "a shorter path", [&](const char* text) {
    const std::size_t length = std::strlen(text);
    if (length < room) std::memcpy(path, text, length + 1);
    return length < room;
  });
}

unsigned read_word(const OptionName& option, const char* words, unsigned otherwise) noexcept {
  unsigned found = otherwise;
  read(option, words, [&](const char* text) {
    unsigned place = 0;
    for (const char* at = words; *at != '\0'; ++place) {
      const std::size_t length = std::strcspn(at, ", ");
      if (std::strlen(text) == length && std::memcmp(at, text, length) == 0) {
        found = place;
        return true;
      }
      at += length;
      at += std::strspn(at, ", ");
      if (std::strncmp(at, "or ", 3) == 0) at += 3;
    }
    return false;
  });
  return found;
}

}  // namespace freehold::os
