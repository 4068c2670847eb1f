// SPDX-License-Identifier: MIT
#include "freehold/base/check.hpp"

#include <unistd.h>

#include <csignal>

#include "freehold/os/text_line.hpp"
#include "tests/support/emulated.hpp"
#include "tests/support/test.hpp"

namespace freehold::base {
namespace {

struct Seen {
  HeapError error;
  const void* address;
};
std::vector<Seen> g_seen;
void note(HeapError error, const void* address) { g_seen.push_back({error, address}); }

constexpr HeapError kErrors[] = {HeapError::kDoubleFree,   HeapError::kForeignPointer, HeapError::kInteriorPointer,
                                 HeapError::kCorruption,   HeapError::kObjectsLive,    HeapError::kOtherFamily,
                                 HeapError::kWrongSize,    HeapError::kWriteBehind,    HeapError::kWriteBefore,
                                 HeapError::kWriteToFreed, HeapError::kUseOfFreed,     HeapError::kAccessBehind,
                                 HeapError::kAccessBefore};

TEST(Fatal, WithHandler_HandlerSeesErrorAndAddressAndTheCallReturns) {
  g_seen.clear();
  const FatalHandler former = set_fatal_handler(note);
  int here = 0;
  for (const HeapError error : kErrors) fatal(error, &here);
  set_fatal_handler(former);
  ASSERT_EQ(g_seen.size(), std::size(kErrors));
  for (std::size_t i = 0; i < g_seen.size(); ++i) {
    EXPECT_EQ(g_seen[i].error, kErrors[i]);
    EXPECT_EQ(g_seen[i].address, &here);
  }
}

TEST(Fatal, Text_EveryErrorHasItsOwn) {
  std::set<std::string> texts;
  for (const HeapError error : kErrors) texts.insert(text(error));
  EXPECT_EQ(texts.size(), std::size(kErrors));
  EXPECT_STREQ(text(static_cast<HeapError>(200)), "unknown error");
}

void write_details(const void* context) {
  os::TextLine<40> line;
  line.add("freehold:   ");
  line.add(static_cast<const char*>(context));
  line.write();
}

TEST(FatalDeathTest, WithDetails_TheyFollowTheFirstLine) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(fatal(HeapError::kWriteBehind, reinterpret_cast<void*>(0xab0), write_details, "block of 24 bytes"),
              testing::KilledBySignal(SIGABRT),
              "^freehold: write behind the end of a block: 0xab0\nfreehold:   block of 24 bytes\n" + test::kEnd);
}

TEST(FatalDeathTest, FatalReturns_TheProcessGoesOnAndErrnoStays) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        set_fatal_returns(true);
        errno = 17;
        fatal(HeapError::kWriteToFreed, reinterpret_cast<void*>(0xab0), [](const void*) { errno = 3; });
        std::exit(errno);
      },
      testing::ExitedWithCode(17), "^freehold: write to a freed block: 0xab0\n" + test::kEnd);
}

TEST(FatalDeathTest, Report_ReturnsTrueWithoutAHandlerAndFalseWithOne) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const bool printed = report(HeapError::kUseOfFreed, reinterpret_cast<void*>(0x10));
        set_fatal_handler(note);
        const bool taken = report(HeapError::kUseOfFreed, nullptr, [](const void*) { std::abort(); });
        std::exit(printed && !taken && g_seen.size() == 1 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "^freehold: use of a freed block: 0x10\n" + test::kEnd);
}

TEST(FatalDeathTest, AssertionFails_PrintsExpressionAndPlace) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(assertion_failed("a == b", "file.cpp", 120), testing::KilledBySignal(SIGABRT),
              "^freehold: assertion failed: a == b at file.cpp:120\n" + test::kEnd);
  const std::string longer(1000, 'x');  // longer than the line's buffer: cut, not overrun
  EXPECT_EXIT(assertion_failed(longer.c_str(), "file.cpp", 1), testing::KilledBySignal(SIGABRT), "assertion failed: xxx");
}

// As what is said at the end of a program that ended well.
TEST(StandardErrorDeathTest, NobodyReadsIt_TheProgramGoesOn) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        int ends[2];
        if (::pipe(ends) != 0 || ::dup2(ends[1], STDERR_FILENO) < 0) ::_exit(1);
        ::close(ends[0]);
        ::close(ends[1]);
        errno = 4711;
        os::write_to_standard_error("a line\n", 7);
        ::_exit(errno == 4711 ? 42 : 2);
      },
      testing::ExitedWithCode(42), "");
}

}  // namespace
}  // namespace freehold::base
