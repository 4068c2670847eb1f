// SPDX-License-Identifier: MIT
// Reports: their form, and that nothing is allocated.
#include "freehold/check/report.hpp"

#include <unistd.h>

#include <csignal>

#include "freehold/os/call_stack.hpp"
#include "tests/support/emulated.hpp"
#include "tests/support/test.hpp"

namespace {
bool g_forbids_allocation = false;
}
// Any allocation during a report ends the test's process in another way than it expects.
void* operator new(std::size_t bytes) {
  if (g_forbids_allocation) std::_Exit(99);
  return std::malloc(bytes);
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }

namespace freehold::check {
namespace {

struct Damage {
  const unsigned char* bytes;
  void* stack[4];
  unsigned depth;
};

void write_damage(const void* context) {
  const auto& damage = *static_cast<const Damage*>(context);
  detail("block of ", std::size_t{24}, " bytes at ", reinterpret_cast<const void*>(0xabc0), ", ", "malloc");
  detail_bytes(damage.bytes, 4, 0xbe);
  detail("allocated by thread ", 4711U, ":");
  detail_stack(damage.stack, damage.depth);
}

class ReportDeathTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(ReportDeathTest, Details_FollowTheFixedLineInTheFixedForm) {
  FREEHOLD_SKIP_IF_EMULATED("no process_vm_readv, so the report says that the bytes cannot be read");
  static constexpr unsigned char kBytes[] = {0xbe, 0x41, 0xbe, 0x0a};
  const Damage damage{kBytes, {}, 0};
  EXPECT_EXIT(
      {
        g_forbids_allocation = true;
        base::fatal(base::HeapError::kWriteBehind, reinterpret_cast<void*>(0xabc0), write_damage, &damage);
      },
      testing::KilledBySignal(SIGABRT),
      "^freehold: write behind the end of a block: 0xabc0\nfreehold:   block of 24 bytes at 0xabc0, malloc\n"
      "freehold:   0x[0-9a-f]+: be \\[41\\] be \\[0a\\]\nfreehold:   allocated by thread 4711:\n"
      "freehold:     no call stack\n" +
          test::kEnd);
}

TEST_F(ReportDeathTest, BytesThatCannotBeRead_SaysSo) {
  EXPECT_EXIT(
      {
        detail_bytes(reinterpret_cast<void*>(0x10), 8, 0);
        std::abort();
      },
      testing::KilledBySignal(SIGABRT), "^freehold:   0x10: cannot be read\n" + test::kEnd);
}

TEST_F(ReportDeathTest, Stack_HasTheFileAndOffsetOfEachCall) {
  if (!os::prepare_call_stacks()) GTEST_SKIP() << "no unwinder";
  Damage damage{nullptr, {}, 0};
  damage.depth = os::capture_call_stack(damage.stack, 4, 0);
  ASSERT_GE(damage.depth, 2U);
  EXPECT_EXIT(
      {
        errno = 17;
        g_forbids_allocation = true;
        detail_stack(damage.stack, damage.depth);
        if (errno == 17) std::abort();
      },
      testing::KilledBySignal(SIGABRT),
      "^freehold:     #0 0x[0-9a-f]+ /[^ ]*unit_report\\+0x[0-9a-f]+\nfreehold:     #1 0x[0-9a-f]+ /");
}

TEST(ReportLine, LongerThanALine_IsCutAndEnded) {
  const std::string longer(2 * kLineBytes, 'x');
  testing::internal::CaptureStderr();
  detail(longer.c_str(), 1U);
  const std::string line = testing::internal::GetCapturedStderr();
  EXPECT_EQ(line.size(), kLineBytes);
  EXPECT_EQ(line.back(), '\n');
}

}  // namespace
}  // namespace freehold::check
