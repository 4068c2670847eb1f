// SPDX-License-Identifier: MIT
#include "freehold/base/callback.hpp"

#include "tests/support/test.hpp"

namespace freehold::base {
namespace {

int twice(int n) { return 2 * n; }

TEST(Callback, CallablesOfEveryKind_AreCalledWithTheArgumentsOrNone) {
  int sum = 1;
  std::vector<int> given;
  const auto large = [&sum, &given](int n) { return given.push_back(n), sum += n; };
  const Callback<int(int)> callbacks[] = {twice, [](int n) { return n + 1; }, [] { return 7; },
                                          [&sum](int n) { return sum += n; }, std::ref(large)};
  std::vector<int> results;
  for (const Callback<int(int)> copy : callbacks) results.push_back(copy(10));
  EXPECT_EQ(results, (std::vector<int>{20, 11, 7, 11, 21}));
  EXPECT_EQ(given, std::vector<int>{10});
  EXPECT_TRUE(static_cast<bool>(callbacks[0]));
  EXPECT_FALSE(static_cast<bool>(Callback<int(int)>()));
}
static_assert(sizeof(Callback<void()>) == 2 * sizeof(void*) && std::is_trivially_copyable_v<Callback<void()>>);
static_assert(!std::is_constructible_v<Callback<void(int)>, void (*)(std::string)>);

}  // namespace
}  // namespace freehold::base
