// SPDX-License-Identifier: MIT
// The simulated machine beyond C++'s atomics: heavy fences, and reports of races on plain data. The classic litmus
// tests are outcomes_test.cpp's.
#include <sstream>

#include "sim/explore.hpp"
#include "sim/sim_atomics.hpp"
#include "tests/support/test.hpp"

namespace freehold::sim {
namespace {

using A = SimAtomics;
using Flag = A::atomic<std::uint32_t>;
constexpr Order kRelaxed = Order::relaxed, kAcquire = Order::acquire, kRelease = Order::release, kSc = Order::seq_cst;

// The threads of one execution read this, as digits.
using Registers = std::array<unsigned, 4>;
using Outcomes = std::set<std::string>;

std::string digits(const Registers& r, unsigned count) {
  std::string text;
  for (unsigned i = 0; i < count; ++i) text += std::to_string(r[i]);
  return text;
}

// Explores a test whose threads get three shared atomics, zero at first, and the registers.
struct Shared {
  Flag x{0}, y{0}, z{0};
  A::var<unsigned> data{0};
  Registers r{};
};
using Body = void (*)(Shared&);

Options all_of(unsigned stale = 4) {
  const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
  return {.name = info->name(), .preemptions = 8, .stale = stale};
}

Result explore_bodies(const Options& options, const std::vector<Body>& bodies, unsigned registers, Outcomes& seen) {
  return explore(options, [&](Execution& run) {
    Shared s;
    for (const Body body : bodies) run.spawn([&s, body] { body(s); });
    run.check([&] { seen.insert(digits(s.r, registers)); });
  });
}

Outcomes outcomes_of(const std::vector<Body>& bodies, unsigned registers, const Options& options = all_of()) {
  Outcomes seen;
  const Result result = explore_bodies(options, bodies, registers, seen);
  EXPECT_TRUE(result.ok()) << result;
  return seen;
}

// A heavy fence is a full one in every thread: a thread with a light fence there need pay nothing (membarrier).
template <bool kFirstHeavy, bool kSecondHeavy>
const std::vector<Body> kStoreBufferingMembarrier = {
    [](Shared& s) {
      s.x.store(1, kRelaxed);
      kFirstHeavy ? A::heavy_fence() : A::light_fence();
      s.r[0] = s.y.load(kRelaxed);
    },
    [](Shared& s) {
      s.y.store(1, kRelaxed);
      kSecondHeavy ? A::heavy_fence() : A::light_fence();
      s.r[1] = s.x.load(kRelaxed);
    },
};
TEST(Litmus, StoreBuffering_LightAgainstHeavyFence_NotBothOld) {
  EXPECT_EQ(outcomes_of(kStoreBufferingMembarrier<false, true>, 2), (Outcomes{"01", "10", "11"}));
  EXPECT_EQ(outcomes_of(kStoreBufferingMembarrier<true, false>, 2,
                        [] {
                          Options options = all_of();
                          options.name += "/mirrored";
                          return options;
                        }()),
            (Outcomes{"01", "10", "11"}));
}
TEST(Litmus, StoreBuffering_HeavyFences_NotBothOld) {
  EXPECT_EQ(outcomes_of(kStoreBufferingMembarrier<true, true>, 2), (Outcomes{"01", "10", "11"}));
}
TEST(Litmus, StoreBuffering_LightFences_BothOld) {
  EXPECT_EQ(outcomes_of(kStoreBufferingMembarrier<false, false>, 2), (Outcomes{"00", "01", "10", "11"}));
}
// The reader's heavy fence stands for both fences of message passing ...
TEST(Litmus, MessagePassing_HeavyFenceOfTheReader_NeverOld) {
  EXPECT_EQ(outcomes_of({[](Shared& s) {
                           s.x.store(1, kRelaxed);
                           A::light_fence();
                           s.y.store(1, kRelaxed);
                         },
                         [](Shared& s) {
                           s.r[0] = s.y.load(kRelaxed);
                           A::heavy_fence();
                           s.r[1] = s.x.load(kRelaxed);
                         }},
                        2),
            (Outcomes{"00", "01", "11"}));
}
// ... and one that comes after the read is too late.
TEST(Litmus, MessagePassing_HeavyFenceAfterTheReads_MayBeOld) {
  EXPECT_TRUE(outcomes_of({[](Shared& s) {
                             s.x.store(1, kRelaxed);
                             s.y.store(1, kRelaxed);
                           },
                           [](Shared& s) {
                             s.r[0] = s.y.load(kRelaxed);
                             s.r[1] = s.x.load(kRelaxed);
                             A::heavy_fence();
                           }},
                          2)
                  .contains("10"));
}

// Data races on plain data.
TEST(Litmus, Race_UnorderedWrites_Reported) {
  Outcomes seen;
  const Result result =
      explore_bodies(all_of(), {[](Shared& s) { s.data.store(1); }, [](Shared& s) { s.data.store(2); }}, 0, seen);
  EXPECT_EQ(result.failure, Failure::kRace);
  EXPECT_NE(result.message.find("memory_model_test.cpp"), std::string::npos) << result;
}
TEST(Litmus, Race_WriteAfterUnorderedRead_Reported) {
  Outcomes seen;
  const Result result = explore_bodies(all_of(),
                                       {[](Shared& s) {
                                          s.r[0] = s.data.load();
                                          s.x.store(1, kRelaxed);
                                        },
                                        [](Shared& s) {
                                          if (s.x.load(kAcquire) == 1) s.data.store(1);
                                        }},
                                       0, seen);
  EXPECT_EQ(result.failure, Failure::kRace) << result;
}
TEST(Litmus, Race_WriteAfterTheRelease_Reported) {
  Outcomes seen;
  const Result result = explore_bodies(all_of(),
                                       {[](Shared& s) {
                                          s.x.store(1, kRelease);
                                          s.data.store(1);
                                        },
                                        [](Shared& s) {
                                          if (s.x.load(kAcquire) == 1) s.r[0] = s.data.load();
                                        }},
                                       1, seen);
  EXPECT_EQ(result.failure, Failure::kRace) << result;
}
// Fences of seq_cst order reads of atomics, but by themselves no plain data.
TEST(Litmus, Race_SeqCstFencesWithoutAtomics_Reported) {
  Outcomes seen;
  const Result result = explore_bodies(all_of(),
                                       {[](Shared& s) {
                                          s.data.store(1);
                                          A::fence(kSc);
                                        },
                                        [](Shared& s) {
                                          A::fence(kSc);
                                          s.r[0] = s.data.load();
                                        }},
                                       1, seen);
  EXPECT_EQ(result.failure, Failure::kRace) << result;
}

}  // namespace
}  // namespace freehold::sim
