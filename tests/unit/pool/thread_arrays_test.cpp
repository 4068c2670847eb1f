// SPDX-License-Identifier: MIT
// Pools beyond the table's places: a thread finds its arrays of them by a chain.
#include "freehold/pool/thread_places.hpp"
#include "tests/support/test.hpp"

namespace freehold::pool {
namespace {

using Arrays = ThreadPlaces<sync::NativeAtomics>;

// As many addresses as pools, at a pool's distances.
struct alignas(64) Address {
  char byte;
};

TEST(ThreadArrays, OneOfAThousandPoolsUsedAgain_TwoStepsOfTheChain) {
  static const std::array<Address, 1000> pools{};
  std::thread([] {
    Arrays::at_exit();
    for (const Address& pool : pools) {
      Arrays::Array* const array = Arrays::unused(&pool, Arrays::Place::kNone);
      ASSERT_NE(array, nullptr);
      array->pool.store(&pool, std::memory_order_relaxed);
    }
    for (const Address& pool : pools) {
      ASSERT_NE(Arrays::further(&pool), nullptr);
      EXPECT_EQ(Arrays::steps_to(&pool), 1U);
    }
    for (std::size_t i = 1; i < pools.size(); ++i) {  // two by turns, whether they hash alike or not
      ASSERT_NE(Arrays::further(&pools[i]), nullptr);
      ASSERT_NE(Arrays::further(&pools[i - 1]), nullptr);
      EXPECT_LE(Arrays::steps_to(&pools[i]), 2U);
    }
  }).join();
}

}  // namespace
}  // namespace freehold::pool
