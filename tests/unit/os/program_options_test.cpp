// SPDX-License-Identifier: MIT
#include "freehold/os/program_options.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <string_view>

// As a program gives its own.
extern "C" {
extern const char* freehold_options;
const char* freehold_options = "test_number:7,test_switch:1,test_byte:none,test_word:auto,test_nonsense:x,unknown:1";
}

namespace freehold::os {
namespace {

constexpr OptionName kNumber{"FREEHOLD_TEST_NUMBER", "test_number"};
constexpr OptionName kSwitch{"FREEHOLD_TEST_SWITCH", "test_switch"};
constexpr OptionName kByte{"FREEHOLD_TEST_BYTE", "test_byte"};
constexpr OptionName kWord{"FREEHOLD_TEST_WORD", "test_word"};
constexpr OptionName kNonsense{"FREEHOLD_TEST_NONSENSE", "test_nonsense"};

// The lines that `f` writes to standard error.
template <class F>
std::string errors_of(const F& f) {
  testing::internal::CaptureStderr();
  f();
  return testing::internal::GetCapturedStderr();
}

TEST(ProgramOptions, GivenInTheProgram_AreRead) {
  std::uint64_t number = 1;
  bool on = false;
  int byte = 3;
  read_number(kNumber, number);
  read_switch(kSwitch, on);
  read_byte_or_none(kByte, byte);
  EXPECT_EQ(number, 7U);
  EXPECT_TRUE(on);
  EXPECT_EQ(byte, -1);
  EXPECT_EQ(read_word(kWord, {"off", "auto", "on"}, "off, auto or on", 0), 1U);
}

TEST(ProgramOptions, GivenTwice_TheEnvironmentWins) {
  ::setenv(kNumber.variable, "11", 1);
  std::uint64_t number = 1;
  read_number(kNumber, number);
  ::unsetenv(kNumber.variable);
  EXPECT_EQ(number, 11U);
}

TEST(ProgramOptions, ThatMakeNoSense_StayAsTheyAreAndAreReported) {
  std::uint64_t number = 1;
  bool on = true;
  int byte = 3;
  EXPECT_EQ(errors_of([&] { read_number(kNonsense, number); }),
            "freehold: ignoring test_nonsense: expected a whole number\n");
  EXPECT_EQ(errors_of([&] { read_switch(kNonsense, on); }), "freehold: ignoring test_nonsense: expected 0 or 1\n");
  EXPECT_EQ(errors_of([&] { read_byte_or_none(kNonsense, byte); }),
            "freehold: ignoring test_nonsense: expected none, or a number from 0 to 255\n");
  EXPECT_EQ(number, 1U);
  EXPECT_TRUE(on);
  EXPECT_EQ(byte, 3);
  for (const char* text : {"256", "-1", "", "12a", "99999999999999999999999"}) {
    ::setenv(kByte.variable, text, 1);
    EXPECT_FALSE(errors_of([&] { read_byte_or_none(kByte, byte); }).empty()) << text;
    EXPECT_EQ(byte, 3) << text;
  }
  ::unsetenv(kByte.variable);
}

TEST(ProgramOptions, ThatNobodyKnows_AreReported) {
  const auto is_known = [](const char* name, std::size_t length) noexcept {
    return std::string_view(name, length).starts_with("test_");
  };
  EXPECT_EQ(errors_of([&] { complain_of_unknown_options(is_known, "test_..."); }),
            "freehold: ignoring unknown: expected test_...\n");
}

}  // namespace
}  // namespace freehold::os
