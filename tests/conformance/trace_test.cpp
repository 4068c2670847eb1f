// SPDX-License-Identifier: MIT
// The randomised traces of trace.hpp, over the malloc family, or over the engine's own interface where this is compiled
// with FREEHOLD_TEST_ENGINE (no library replaces malloc there, so the sanitizers watch the engine as well).
#include <cstdio>

#include "tests/support/test.hpp"
#include "tests/support/trace.hpp"
#if defined(FREEHOLD_TEST_ENGINE)
#include "freehold/alloc/engine.hpp"
#else
#include "tests/support/c_api.hpp"
#include "tests/support/expected_malloc.hpp"
#endif

namespace freehold::test {
namespace {

#if defined(FREEHOLD_TEST_ENGINE)
struct Api {
  static void* allocate(std::size_t bytes) { return alloc::allocate(bytes); }
  static void* allocate_zeroed(std::size_t bytes) { return alloc::allocate_zeroed(bytes); }
  static void* allocate_aligned(std::size_t alignment, std::size_t bytes) {
    return alloc::allocate_aligned(alignment, bytes);
  }
  static void* reallocate(void* block, std::size_t bytes) { return alloc::reallocate(block, bytes); }
  static void deallocate(void* block) { alloc::deallocate(block); }
  static std::size_t usable_size(void* block) { return alloc::usable_size(block); }
  static void trim() { alloc::trim(); }
};
#else
using Api = CApi;
#endif

constexpr std::size_t kMiB = std::size_t{1} << 20;

// A new seed each day finds more than the same one for ever; the failure prints it, and FREEHOLD_TEST_SEED replays it.
class Trace : public ::testing::Test {
 protected:
  std::uint64_t seed_ = number_from_environment("FREEHOLD_TEST_SEED", std::random_device{}());
  std::uint64_t scale_ = number_from_environment("FREEHOLD_TEST_SCALE", 1);

  void SetUp() override {
    std::printf("FREEHOLD_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed_));
    std::fflush(stdout);
  }
};

TEST_F(Trace, OneThread_RandomCalls_MatchTheModel) { EXPECT_EQ(run_trace<Api>(seed_, 200'000 * scale_, 64 * kMiB), ""); }

TEST_F(Trace, OneThread_FewLiveBytes_MatchTheModel) { EXPECT_EQ(run_trace<Api>(seed_, 100'000 * scale_, 2 * kMiB), ""); }

TEST_F(Trace, FourThreads_FreeingEachOthersBlocks_LoseNothing) {
  EXPECT_EQ(run_shared_trace<Api>(seed_, 4, 1, 60'000 * scale_), "");
}

TEST_F(Trace, ManyShortThreads_FreeingEachOthersBlocks_LoseNothing) {
  EXPECT_EQ(run_shared_trace<Api>(seed_, 16, static_cast<unsigned>(8 * scale_), 2'000), "");
}

}  // namespace
}  // namespace freehold::test
