// SPDX-License-Identifier: MIT
// The CPUs' stacks over a core that only counts: every slot that it gave is in one place, in use, in a stack or given back.
#include "freehold/alloc/front/cpu_cache.hpp"

#include <sched.h>

#include "freehold/alloc/config.hpp"
#include "tests/support/test.hpp"
#include "tests/unit/alloc/support.hpp"

namespace freehold::alloc {
namespace {

using Classes = SizeClasses;

struct CountingCore {
  std::size_t take_batch(SizeClass, void** slots, std::size_t n, unsigned) {
    if (is_empty) return 0;
    for (std::size_t i = 0; i < n; ++i) out.insert(slots[i] = reinterpret_cast<void*>(next_slot += 16));
    if (meanwhile) std::exchange(meanwhile, nullptr)();
    return n;
  }
  void give_batch(SizeClass, void* const* slots, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(out.erase(slots[i]), 1U) << "given back twice";
  }

  std::uintptr_t next_slot = 4096;
  bool is_empty = false;
  std::set<void*> out;
  std::function<void()> meanwhile;  // what another thread of this CPU does during a take_batch()
};

class CpuCache : public testing::Test {
 protected:
  void SetUp() override {
    if (!os::rseq_available()) GTEST_SKIP() << "no restartable sequences here";
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(os::current_cpu(), &one);
    ASSERT_EQ(sched_getaffinity(0, sizeof(before_), &before_), 0);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);  // all calls see the same stacks
    ASSERT_TRUE(caches_.init(core_, pages_));
  }
  void TearDown() override { (void)sched_setaffinity(0, sizeof(before_), &before_); }

  // Returns what is in the stack of class c.
  std::set<void*> pop_all(SizeClass c) {
    std::set<void*> slots;
    while (void* slot = caches_.pop(c)) EXPECT_TRUE(slots.insert(slot).second) << "a slot lies there twice";
    return slots;
  }

  cpu_set_t before_{};
  CountingCore core_;
  test::FakePages pages_;
  CpuCaches<CountingCore, Classes> caches_;
};

TEST_F(CpuCache, Refill_EveryClass_OneForTheCallerTheOthersInTheStack) {
  for (const SizeClass c : AllClasses<Classes>{}) {
    core_.out.clear();
    void* const mine = caches_.refill(c);
    std::set<void*> all = pop_all(c);
    EXPECT_TRUE(all.insert(mine).second);
    EXPECT_EQ(all, core_.out) << c.index();
  }
}

TEST_F(CpuCache, Refill_StackWasFilledMeanwhile_TheRestGoesBack) {
  for (const SizeClass c : AllClasses<Classes>{}) {
    core_.out.clear();
    std::set<void*> others;
    core_.meanwhile = [&] {
      for (std::uintptr_t slot = 16; caches_.push(c, reinterpret_cast<void*>(slot)); slot += 16)
        others.insert(reinterpret_cast<void*>(slot));
    };
    void* const mine = caches_.refill(c);
    EXPECT_EQ(core_.out, std::set<void*>{mine}) << c.index();
    EXPECT_EQ(pop_all(c), others) << c.index();
  }
}

TEST_F(CpuCache, MemoryIsOut_NullAndNothingElse) {
  core_.is_empty = true;
  for (const SizeClass c : AllClasses<Classes>{}) EXPECT_EQ(caches_.refill(c), nullptr) << c.index();
  CpuCaches<CountingCore, Classes> others;
  pages_.fail_from_now_on();
  EXPECT_FALSE(others.init(core_, pages_));
  EXPECT_FALSE(others.ready());
}

// Another thread of this CPU was faster: there is less in the stack than a batch.
TEST_F(CpuCache, Drain_AlmostEmptyStack_WhatIsThereAndTheSlotGoBack) {
  for (const SizeClass c : AllClasses<Classes>{}) {
    core_.out.clear();
    void* slots[2] = {};
    ASSERT_EQ(core_.take_batch(c, slots, 2, 0), 2U);
    ASSERT_TRUE(caches_.push(c, slots[0]));
    caches_.drain(c, slots[1]);
    EXPECT_TRUE(core_.out.empty()) << c.index();
    EXPECT_EQ(caches_.pop(c), nullptr) << c.index();
  }
}

TEST_F(CpuCache, Drain_FullStack_ABatchAndTheSlotGoBack) {
  for (const SizeClass c : AllClasses<Classes>{}) {
    core_.out.clear();
    void* slot = caches_.refill(c);
    while (caches_.push(c, slot)) ASSERT_EQ(core_.take_batch(c, &slot, 1, 0), 1U);
    const std::size_t before = core_.out.size();
    caches_.drain(c, slot);
    EXPECT_FALSE(core_.out.contains(slot));
    EXPECT_LE(core_.out.size(), before - std::min<std::size_t>(before, 2)) << c.index();
    EXPECT_EQ(pop_all(c), core_.out) << c.index();
  }
}

// docs/guarantees.md gives both figures.
TEST_F(CpuCache, FullStack_EveryClass_AtMost8KiBOrOneSlot) {
  std::size_t all = 0;
  for (const SizeClass c : AllClasses<Classes>{}) {
    std::size_t bytes = 0;
    for (std::uintptr_t slot = 16; caches_.push(c, reinterpret_cast<void*>(slot)); slot += 16)
      bytes += Classes::slot_bytes(c);
    EXPECT_LE(bytes, std::max<std::size_t>(8 * 1024, Classes::slot_bytes(c))) << c.index();
    EXPECT_GT(bytes, 0U) << c.index();
    all += bytes;
  }
  EXPECT_EQ(all / 1024, 687U);
}

TEST_F(CpuCache, Flush_EveryClass_NothingIsLeft) {
  std::set<void*> mine;
  for (const SizeClass c : AllClasses<Classes>{}) mine.insert(caches_.refill(c));
  caches_.flush();
  EXPECT_EQ(core_.out, mine);
  for (const SizeClass c : AllClasses<Classes>{}) EXPECT_EQ(caches_.pop(c), nullptr) << c.index();
}

}  // namespace
}  // namespace freehold::alloc
