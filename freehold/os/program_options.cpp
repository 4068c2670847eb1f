// SPDX-License-Identifier: MIT
#include "freehold/os/program_options.hpp"

#include <unistd.h>

#include <cstdlib>
#include <cstring>

// The program's own, where it defines one (freehold/malloc.h).
extern "C" [[gnu::weak, gnu::visibility("default")]] const char* freehold_options;

namespace freehold::os {
namespace {

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

// The value of an option: the environment's, else the program's. `room` holds a copy of the latter.
[[nodiscard]] Found look_up(const OptionName& option, char (&room)[kMostBytes]) noexcept {
  if (const char* const text = ::secure_getenv(option.variable); text != nullptr) return {option.variable, text};
  Found found{option.compiled, nullptr};
  for_each_compiled([&](const char* name, std::size_t name_length, const char* value, std::size_t length) {
    if (value == nullptr || !is_named(option, name, name_length) || length >= kMostBytes) return;
    std::memcpy(room, value, length);
    room[length] = '\0';
    found.text = room;
  });
  return found;
}

}  // namespace

// Built by hand: this runs inside the first malloc.
void complain_of_option(const char* name, const char* expected) noexcept {
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

bool is_named(const OptionName& option, const char* name, std::size_t length) noexcept {
  return option.compiled != nullptr && std::strlen(option.compiled) == length &&
         std::memcmp(option.compiled, name, length) == 0;
}

void complain_of_unknown_options(bool (*is_known)(const char*, std::size_t) noexcept, const char* expected) noexcept {
  for_each_compiled([=](const char* name, std::size_t name_length, const char* value, std::size_t length) {
    if (value != nullptr && length < kMostBytes && is_known(name, name_length)) return;
    char copy[kMostBytes] = {};
    std::memcpy(copy, name, name_length < kMostBytes ? name_length : kMostBytes - 1);
    complain_of_option(copy, expected);
  });
}

bool is_positive_number(const OptionName& option) noexcept {
  char room[kMostBytes];
  const Found found = look_up(option, room);
  std::uint64_t number = 0;
  return found.text != nullptr && parse_number(found.text, number) && number != 0;
}

void read_number(const OptionName& option, std::uint64_t& value) noexcept {
  char room[kMostBytes];
  const Found found = look_up(option, room);
  if (found.text != nullptr && !parse_number(found.text, value)) complain_of_option(found.name, "a whole number");
}

void read_switch(const OptionName& option, bool& value) noexcept {
  char room[kMostBytes];
  const Found found = look_up(option, room);
  if (found.text == nullptr) return;
  if ((*found.text != '0' && *found.text != '1') || found.text[1] != '\0') return complain_of_option(found.name, "0 or 1");
  value = *found.text == '1';
}

void read_byte_or_none(const OptionName& option, int& value) noexcept {
  char room[kMostBytes];
  const Found found = look_up(option, room);
  if (found.text == nullptr) return;
  std::uint64_t number = 0;
  if (std::strcmp(found.text, "none") == 0)
    value = -1;
  else if (parse_number(found.text, number) && number <= 255)
    value = static_cast<int>(number);
  else
    complain_of_option(found.name, "none, or a number from 0 to 255");
}

void read_path(const OptionName& option, char* path, std::size_t room) noexcept {
  const char* const text = ::secure_getenv(option.variable);
  if (text == nullptr) return;
  const std::size_t length = std::strlen(text);
  if (length >= room) return complain_of_option(option.variable, "a shorter path");
  std::memcpy(path, text, length + 1);
}

unsigned read_word(const OptionName& option, const std::array<const char*, 3>& words, const char* expected,
                   unsigned otherwise) noexcept {
  char room[kMostBytes];
  const Found found = look_up(option, room);
  if (found.text == nullptr) return otherwise;
  for (unsigned i = 0; i < words.size(); ++i)
    if (std::strcmp(found.text, words[i]) == 0) return i;
  complain_of_option(found.name, expected);
  return otherwise;
}

}  // namespace freehold::os
