// SPDX-License-Identifier: MIT
// The options that a program's user gives in the environment, or its author in a string that is compiled into it
// (freehold_options in freehold/malloc.h); the environment wins. Setuid programs ignore the environment.
//
// An option has a lower-case name and a kind. A table of options is a macro with a row for each, such as FREEHOLD_OPTIONS in
// alloc/options.hpp: members, reading and the known names follow from it.
//
//   os::read_switch("verbose", verbose);  // reads FREEHOLD_VERBOSE=1, or "verbose:1" in the string
//
// A value that makes no sense is reported on standard error in one line, and the default stands. Any thread; no allocation,
// so that it may run inside the first malloc.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace freehold::os {

struct EnvironmentOnly {};

// The option "live" is FREEHOLD_LIVE in the environment. Holds no pointer: a table of names needs no relocation.
struct OptionName {
  char variable[32] = "FREEHOLD_";
  char name[23] = {};
  bool environment_only = false;

  consteval OptionName(const char* lower_case) {
    for (std::size_t i = 0; lower_case[i] != '\0'; ++i) {
      const char letter = name[i] = lower_case[i];
      variable[9 + i] = static_cast<char>('a' <= letter && letter <= 'z' ? letter - 'a' + 'A' : letter);
      name[i + 1] = '\0';  // does not compile if the name is too long
    }
  }
  template <class Kind>
  consteval OptionName(const char* lower_case, Kind) : OptionName(lower_case) {
    environment_only = std::is_base_of_v<EnvironmentOnly, Kind>;
  }
};

// Each sets `value`, unless the option is not given or makes no sense.
void read_number(const OptionName& option, std::uint64_t& value) noexcept;
// A number; what is greater than an int becomes the greatest int.
void read_int(const OptionName& option, int& value) noexcept;
// 0 or 1.
void read_switch(const OptionName& option, bool& value) noexcept;
// A number from 0 to 255, or "none", which is -1.
void read_byte_or_none(const OptionName& option, int& value) noexcept;
void read_path(const OptionName& option, char* path, std::size_t room) noexcept;
// `words`: "off, auto or on". Returns the place of the option's word among them, or `otherwise`.
[[nodiscard]] unsigned read_word(const OptionName& option, const char* words, unsigned otherwise) noexcept;

// The kinds: the type of the value, and how it is read.
template <class T, void (&kRead)(const OptionName&, T&) noexcept>
struct Kind {
  using Type = T;
  static constexpr auto& read = kRead;
};
using Number = Kind<std::uint64_t, read_number>;
using Int = Kind<int, read_int>;
using Switch = Kind<bool, read_switch>;
using ByteOrNone = Kind<int, read_byte_or_none>;
struct Variable : Int, EnvironmentOnly {};
// A word for each value of E, as words_of(E) lists them.
template <class E>
struct Word {
  using Type = E;
  static void read(const OptionName& option, E& value) noexcept {
    value = static_cast<E>(read_word(option, words_of(value), static_cast<unsigned>(value)));
  }
};
// Paths are longer than the values of a program's string.
template <std::size_t kBytes>
struct PathText : EnvironmentOnly {
  using Type = char[kBytes];
  static void read(const OptionName& option, Type& path) noexcept { read_path(option, path, kBytes); }
};

// True if the value is a number and not 0. Complains of nothing.
[[nodiscard]] bool is_positive_number(const OptionName& option) noexcept;
// Writes the line "freehold: ignoring NAME: expected EXPECTED".
void complain_of_option(const char* name, const char* expected) noexcept;
// Complains of each option in the program's string that is neither among `options` nor `others`. The line lists `options`,
// with `ending` behind them.
void complain_of_unknown_options(std::span<const OptionName> options, std::span<const OptionName> others,
                                 const char* ending) noexcept;

}  // namespace freehold::os
