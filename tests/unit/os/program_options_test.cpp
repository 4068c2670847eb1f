// SPDX-License-Identifier: MIT
// Options with wrong values are reported. tests/linking shows that options are read, and that the environment wins.
#include "freehold/os/program_options.hpp"
#include "tests/support/test.hpp"

// As a program gives its own.
extern "C" {
extern const char* freehold_options;
const char* freehold_options = "test_nonsense:x";
}

namespace freehold::os {
namespace {

constexpr OptionName kByte{"test_byte"};
constexpr OptionName kNonsense{"test_nonsense"};

// The lines that `f` writes to standard error.
template <class F>
std::string errors_of(const F& f) {
  testing::internal::CaptureStderr();
  f();
  return testing::internal::GetCapturedStderr();
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

TEST(ProgramOptions, ThatAreUnknown_AreReportedWithTheNamesThatTheStringMayHave) {
  constexpr OptionName kKnown[] = {{"test_byte"}, {"test_path", EnvironmentOnly{}}, {"test_other"}};
  EXPECT_EQ(errors_of([&] { complain_of_unknown_options(kKnown, {}, " or a fourth"); }),
            "freehold: ignoring test_nonsense: expected test_byte, test_other or a fourth\n");
  EXPECT_EQ(errors_of([&] { complain_of_unknown_options(kKnown, {&kNonsense, 1}, ""); }), "");
}

}  // namespace
}  // namespace freehold::os
