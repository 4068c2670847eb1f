// SPDX-License-Identifier: MIT
// The options that a program's user gives in the environment, or its author in a string that is compiled into it
// (freehold_options in freehold/malloc.h); the environment wins. Setuid programs ignore the environment.
//
//   constexpr os::OptionName kVerbose{"FREEHOLD_VERBOSE", "verbose"};
//   os::read_switch(kVerbose, verbose);                             // stays as it is where nothing is said
//
// A value that makes no sense is reported on standard error in one line, and the default stands. Any thread; no allocation,
// so that it may run inside the first malloc.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace freehold::os {

// An option: its variable, and its name in the program's string (null: it has none).
struct OptionName {
  const char* variable;
  const char* compiled;
};

// Whether the value is a number that is not 0. Complains of nothing.
[[nodiscard]] bool is_positive_number(const OptionName& option) noexcept;
// Each: Returns nothing; where the option is not given, or makes no sense, `value` stays.
void read_number(const OptionName& option, std::uint64_t& value) noexcept;
// 0 or 1.
void read_switch(const OptionName& option, bool& value) noexcept;
// A number from 0 to 255, or "none", which is -1.
void read_byte_or_none(const OptionName& option, int& value) noexcept;
// The place of the option's word among three; `otherwise`. `expected`: the words, for a complaint.
[[nodiscard]] unsigned read_word(const OptionName& option, const std::array<const char*, 3>& words, const char* expected,
                                 unsigned otherwise) noexcept;

// A path, to an array of `room` bytes; from the environment alone.
void read_path(const OptionName& option, char* path, std::size_t room) noexcept;

// Writes the line "freehold: ignoring NAME: expected EXPECTED".
void complain_of_option(const char* name, const char* expected) noexcept;
// Complains of what no option can be read from in the program's string: `is_known(name, its length)` tells.
void complain_of_unknown_options(bool (*is_known)(const char* name, std::size_t length) noexcept,
                                 const char* expected) noexcept;
// Whether an option has that name in the program's string.
[[nodiscard]] bool is_named(const OptionName& option, const char* name, std::size_t length) noexcept;

}  // namespace freehold::os
