// SPDX-License-Identifier: MIT
// A limit of the address space (ulimit -v) is used nearly whole, however large, and obeyed, whenever it was set.
// Large blocks here: glibc 0.98 to 1.00 of the limit, jemalloc 0.81 to 0.99, mimalloc 0.86 to 0.99. glibc obeys a limit that
// came later (0.97 of it) and starts threads all the time.
#include "tests/memory_return/memory_return.hpp"

namespace freehold::test {
namespace {

constexpr rlim_t kGiB = rlim_t{1} << 30;

struct Limit {
  const char* name;
  rlim_t bytes;
  const char *block_kib, *stop_at_gib;
  int runs;  // the kernel places mappings at random
};
void PrintTo(const Limit& limit, std::ostream* out) { *out << limit.name; }

class UnderUlimit : public ::testing::TestWithParam<Limit> {
 protected:
  static Command limited(std::vector<std::string> arguments) {
    Command command = case_of(std::move(arguments));
    command.limits = {{RLIMIT_AS, GetParam().bytes}};
    return command;
  }
};
TEST_P(UnderUlimit, UntouchedBlocks_UseNineTenths) {
  for (int i = 0; i < GetParam().runs; ++i) {
    const Outcome outcome = run_and_print(limited({"address_space_used", GetParam().block_kib, GetParam().stop_at_gib}));
    EXPECT_GE(figure_of(outcome, "share_of_limit"), 0.9);
    EXPECT_LE(figure_of(outcome, "share_of_limit"), 1);
    EXPECT_GE(figure_of(outcome, "share_of_limit_again"), 0.9);
  }
}
INSTANTIATE_TEST_SUITE_P(AddressSpace, UnderUlimit,
                         ::testing::Values(Limit{"Gib2Blocks32Mib", 2 * kGiB, "32768", "100", 5},
                                           Limit{"Gib2Blocks70Kib", 2 * kGiB, "70", "100", 1},
                                           Limit{"Gib100Blocks32Mib", 100 * kGiB, "32768", "100", 5},
                                           Limit{"Gib100Blocks1Gib", 100 * kGiB, "1048576", "1024", 2},
                                           Limit{"Tib1Blocks256Mib", 1024 * kGiB, "262144", "1024", 2},
                                           Limit{"Gib100Blocks30Kib", 100 * kGiB, "30", "100", 5},
                                           Limit{"Tib1Blocks30Kib", 1024 * kGiB, "30", "100", 1},
                                           Limit{"Tib1Blocks1Gib", 1024 * kGiB, "1048576", "1024", 2}),
                         [](const auto& instance) { return instance.param.name; });

TEST(UlimitOf2Gib, SmallBlocks_UseAGibibyte) {
  Command command = case_of({"address_space_small_blocks", "1024"});
  command.limits = {{RLIMIT_AS, 2 * kGiB}};
  EXPECT_EQ(figure_of(run_and_print(command), "mib"), 1024);
}
TEST(UlimitOf100GibAnd1Tib, SmallBlocks_AllCome) {
  for (const rlim_t bytes : {100 * kGiB, 1024 * kGiB}) {
    Command command = case_of({"address_space_small_blocks", "256"});
    command.limits = {{RLIMIT_AS, bytes}};
    EXPECT_EQ(figure_of(run_and_print(command), "mib"), 256);
  }
}

TEST(LimitSetLater, UntilItIsLifted_IsObeyed) {
  const Outcome outcome = run_and_print({"address_space_limited_later"});
  EXPECT_EQ(figure_of(outcome, "refused"), 1) << "one block of more than the limit";
  EXPECT_LE(figure_of(outcome, "share_of_limit"), 1);
  EXPECT_GE(figure_of(outcome, "share_of_limit"), 0.5);
  EXPECT_EQ(figure_of(outcome, "thread_at_first"), 1);
  EXPECT_EQ(figure_of(outcome, "thread_after_two_went"), 1);
  EXPECT_EQ(figure_of(outcome, "granted_when_lifted"), 1);
}

}  // namespace
}  // namespace freehold::test
