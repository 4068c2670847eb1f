// SPDX-License-Identifier: MIT
// Recordings made by hand, of which every figure is known.
#include "tools/doctor/facts/attribution.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tools/doctor/verdict/site_advice.hpp"

namespace freehold::doctor {
namespace {

Frame frame(const std::string& function, const std::string& file = "prog.cpp", unsigned line = 1,
            const std::string& module = "/usr/bin/prog") {
  return {.function = function, .file = file, .line = line, .module = module, .inlined = false};
}

Frame inlined(const std::string& function, const std::string& file) {
  Frame made = frame(function, file);
  made.inlined = true;
  return made;
}

// A recording together with what its addresses are called.
class HandMade {
 public:
  Recording recording;

  HandMade() { recording.stacks.emplace_back(); }

  // One address for each frame, innermost first.
  StackId stack(const std::vector<Frame>& frames) {
    std::vector<std::uint64_t> addresses;
    for (const Frame& one : frames) {
      addresses.push_back(names_.size() + 0x1000);
      names_[addresses.back()] = {one};
    }
    recording.stacks.push_back(addresses);
    return static_cast<StackId>(recording.stacks.size() - 1);
  }
  BlockSample& block(StackId stack, double weight, std::uint64_t bytes, std::uint32_t thread = 1) {
    BlockSample& made = recording.blocks.emplace_back();
    made.stack = stack;
    made.weight = weight;
    made.bytes = bytes;
    made.thread = thread;
    return made;
  }
  void end(BlockSample& block, double at_s, std::uint32_t thread = 1, StackId stack = 0) {
    block.ended_s = at_s;
    block.ending_thread = thread;
    block.ending_stack = stack;
  }
  [[nodiscard]] Evidence evidence() {
    return {recording, [this](std::uint64_t address) -> const std::vector<Frame>& { return names_[address]; }};
  }
  [[nodiscard]] Attribution attribution() {
    const Evidence one = evidence();
    return attribution_of(std::span(&one, 1));
  }

 private:
  std::map<std::uint64_t, std::vector<Frame>> names_;
};

// 1000 allocations of 100 ns and as many frees of 50 ns in 1 ms of CPU time, a quarter of a millisecond of it the probe's.
TEST(Attribution, TimeInsideMalloc_ShareOfTheProgramsCpuTimeWithoutTheProbe) {
  HandMade made;
  made.recording.seconds = 0.002;
  made.recording.fast_path_ns = 25;
  made.recording.threads[1] = {
      .allocations = 1000, .frees = 1000, .cpu_s = 1e-3, .probe_s = 2e-4, .began_s = 0, .last_s = 0.002};
  const StackId stack = made.stack({frame("work()"), frame("main")});
  for (int i = 0; i < 10; ++i) {
    BlockSample& block = made.block(stack, 100, 32);
    block.call_ns = 100;
    made.recording.frees.push_back({.weight = 100, .call_ns = 50, .thread = 1});
  }
  const Attribution found = made.attribution();
  EXPECT_DOUBLE_EQ(found.allocating.calls, 1000);
  EXPECT_DOUBLE_EQ(found.freeing.calls, 1000);
  EXPECT_DOUBLE_EQ(found.allocations_per_s, 500'000);
  EXPECT_NEAR(found.allocating.mean_ns(), 100, 1e-9);
  EXPECT_NEAR(found.freeing.mean_ns(), 50, 1e-9);
  EXPECT_NEAR(found.probe_share, 0.25, 1e-12);
  EXPECT_NEAR(found.cpu_s, 7.5e-4, 1e-12);
  EXPECT_NEAR(found.cpu_share, 0.2, 1e-12);
  EXPECT_NEAR(found.cpu_share_error, 0, 1e-9) << "every call took the same";
  EXPECT_EQ(found.blocked_share, 0);
}

// Ten calls of a microsecond and one sample of which 3 us were sleep and 1 us the wait for a CPU.
TEST(Attribution, WaitsInsideMalloc_BlockedIsApartFromRunningAndPreempted) {
  HandMade made;
  made.recording.seconds = 1e-4;
  made.recording.threads[1] = {.cpu_s = 1e-4, .began_s = 0, .last_s = 1e-4};
  BlockSample& block = made.block(made.stack({frame("work()")}), 10, 32);
  block.call_ns = 5000;
  block.waited_s = 3e-6;
  block.preempted_s = 1e-6;
  const Attribution found = made.attribution();
  EXPECT_NEAR(found.allocating.cpu_s, 1e-5, 1e-12);
  EXPECT_NEAR(found.allocating.blocked_s, 3e-5, 1e-12);
  EXPECT_NEAR(found.cpu_share, 0.1, 1e-9);
  EXPECT_NEAR(found.blocked_share, 0.3, 1e-9);
}

TEST(Attribution, Site_IsTheFirstFrameOfTheProgramsOwn) {
  HandMade made;
  const Frame caller = frame("parse(std::string const&)", "parse.cpp", 210);
  const StackId vector = made.stack({frame("operator new(unsigned long)", "", 0, "/lib/libstdc++.so.6"),
                                     inlined("allocate", "/usr/include/c++/12/bits/new_allocator.h"),
                                     frame("void std::vector<int, std::allocator<int> >::_M_realloc_insert<int>(int&&)"),
                                     caller, frame("main")});
  const StackId plain = made.stack({caller, frame("main")});
  const StackId from_elsewhere = made.stack({caller, frame("other()"), frame("main")});
  made.block(vector, 2, 8);
  made.block(plain, 1, 8);
  made.block(from_elsewhere, 5, 8);
  const Attribution found = made.attribution();
  ASSERT_EQ(found.sites.size(), 1U);
  const Place& place = found.sites[0].place;
  EXPECT_EQ(place.text(), "parse(std::string const&) at parse.cpp:210");
  EXPECT_EQ(place.all_stacks, 3U);
  ASSERT_EQ(place.stacks.size(), 3U);
  EXPECT_EQ(place.stacks[0].frames[1].function, "other()");
  EXPECT_DOUBLE_EQ(place.stacks[0].share, 5.0 / 8);
  EXPECT_EQ(place.stacks[1].frames.size(), 2U) << "what is folded away is in no stack";
}

TEST(Attribution, Plumbing_IsToldFromTheProgramByNameModuleAndFolder) {
  const std::vector<std::string> library{
      "malloc",
      "operator new[](unsigned long, std::align_val_t)",
      "operator delete(void*)",
      "std::thread::_M_start_thread(std::unique_ptr<int>, void (*)())",
      "void std::vector<main::{lambda()#1}>::resize<int>(unsigned long)",
      "std::unique_ptr<A, std::default_delete<A> > std::make_unique<A>()",
      "std::ostream& std::operator<< <char>(std::ostream&, char)",
      "__gnu_cxx::new_allocator<int>::allocate(unsigned long)",
      "xmalloc",
      "alloc::raw_vec::RawVec<T,A>::grow_one",
      "<alloc::vec::Vec<T> as core::clone::Clone>::clone",
      "std::sys::sync::mutex::futex::Mutex::lock_contended",
      "runtime.mallocgc",
      "PyObject_Malloc",
  };
  for (const auto& name : library) EXPECT_TRUE(is_library_frame(frame(name))) << name;
  const std::vector<std::string> own{"main",
                                     "mallocate(int)",
                                     "std_like::f()",
                                     "std::vector<int> parse(std::string const&)",
                                     "parse(std::string const&) const",
                                     "(anonymous namespace)::parse()",
                                     "main::{lambda(std::string const&)#1}::operator()(std::string const&) const",
                                     "bool operator< <int>(A const&, std::string)",
                                     "A::operator new(unsigned long)",
                                     "0x1234",
                                     ""};
  for (const auto& name : own) EXPECT_FALSE(is_library_frame(frame(name))) << name;
  EXPECT_TRUE(is_library_frame(frame("printf", "", 0, "/lib/x86_64-linux-gnu/libc.so.6")));
  EXPECT_TRUE(is_library_frame(frame("GC_locker", "", 0, "/usr/lib/jvm/lib/server/libjvm.so")));
  EXPECT_TRUE(is_library_frame(inlined("exchange_malloc", "/rustc/59807616e/library/alloc/src/alloc.rs")));
  EXPECT_TRUE(is_library_frame(inlined("allocate", "/usr/include/c++/12/bits/allocator.h")));
  EXPECT_FALSE(is_library_frame(frame("parse()", "/usr/include/c++/12/bits/std_mutex.h"))) << "inlined, but not marked so";
  EXPECT_FALSE(is_library_frame(frame("xmlNewNode", "", 0, "/lib/libxml2.so.2")));
}

TEST(Attribution, NamesOfRust_AsTheSourceHasThem) {
  EXPECT_EQ(demangled("_ZN4demo3fooEv"), "demo::foo()");
  EXPECT_EQ(demangled("plain"), "plain");
  for (const char* const function : {"f", "i", "St", "Pc"}) EXPECT_EQ(demangled(function), function) << "no type";
  EXPECT_EQ(demangled("_RNvC6_123foo3bar"), "123foo::bar");
}

// Two sites: one of one size, freed elsewhere after 2 ms; the other of many sizes, living on.
TEST(Attribution, Sites_CountsSizesLifetimesAndWhoFrees) {
  HandMade made;
  made.recording.seconds = 1;
  const StackId hot = made.stack({frame("hot()"), frame("main")});
  const StackId cold = made.stack({frame("cold()"), frame("main")});
  const StackId sink = made.stack({frame("operator delete(void*)"), frame("sink()"), frame("main")});
  for (int i = 0; i < 8; ++i) {
    BlockSample& block = made.block(hot, 10, 48);
    block.call_ns = 300;
    block.began_s = 0.1;
    made.end(block, 0.102, i < 6 ? 2 : 1, i < 6 ? sink : hot);
  }
  for (const std::uint64_t bytes : {16, 100, 1000}) made.block(cold, 10, bytes).call_ns = 200;
  for (int i = 0; i < 2; ++i) made.recording.frees.push_back({.weight = 40, .call_ns = 75});
  const Attribution found = made.attribution();
  ASSERT_EQ(found.sites.size(), 2U);
  const AllocationSite& first = found.sites[0];
  EXPECT_EQ(first.place.frame().function, "hot()");
  EXPECT_DOUBLE_EQ(first.time.calls, 80);
  EXPECT_DOUBLE_EQ(first.bytes, 80 * 48);
  EXPECT_TRUE(first.fixed_size);
  EXPECT_EQ(first.typical_bytes, 48);
  EXPECT_DOUBLE_EQ(first.freed_elsewhere, 0.75);
  ASSERT_TRUE(first.median_lifetime_s);
  EXPECT_NEAR(*first.median_lifetime_s, 0.002, 1e-9);
  // 24 us allocating and all 6 us of freeing, of 36 us.
  EXPECT_NEAR(first.time_share, 30.0 / 36, 1e-9);
  const AllocationSite& second = found.sites[1];
  EXPECT_FALSE(second.fixed_size);
  EXPECT_EQ(second.typical_bytes, 100);
  EXPECT_FALSE(second.median_lifetime_s);
  EXPECT_EQ(second.freed_elsewhere, 0);
  EXPECT_DOUBLE_EQ(found.live_at_exit, 30);

  EXPECT_DOUBLE_EQ(found.remote_share, 0.75);
  ASSERT_EQ(found.remote_sites.size(), 1U);
  EXPECT_EQ(found.remote_sites[0].site, 0U);
  EXPECT_EQ(found.remote_sites[0].freed_at.frame().function, "sink()");
  EXPECT_DOUBLE_EQ(found.remote_sites[0].frees, 60);
  EXPECT_DOUBLE_EQ(found.remote_sites[0].share, 1);
  ASSERT_EQ(found.remote_threads.size(), 1U);
  EXPECT_EQ(found.remote_threads[0].from, 1U);
  EXPECT_EQ(found.remote_threads[0].to, 2U);
}

TEST(Attribution, Histograms_PowersOfTwoAndOfTen) {
  HandMade made;
  made.recording.seconds = 10;
  const StackId stack = made.stack({frame("main")});
  const auto lives = [&](std::uint64_t bytes, double seconds) { made.end(made.block(stack, 3, bytes), seconds); };
  lives(1, 1e-9);
  lives(64, 1e-3);
  lives(65, 1.1e-3);
  lives(128, 5);
  const Attribution found = made.attribution();
  ASSERT_EQ(found.sizes.size(), 3U);
  EXPECT_EQ(found.sizes[0].most_bytes, 1U);
  EXPECT_EQ(found.sizes[1].most_bytes, 64U);
  EXPECT_EQ(found.sizes[2].most_bytes, 128U);
  EXPECT_DOUBLE_EQ(found.sizes[2].allocations, 6);
  EXPECT_DOUBLE_EQ(found.sizes[2].bytes, 3 * (65 + 128));
  ASSERT_EQ(found.lifetimes.size(), 4U);
  const double most[] = {1e-6, 1e-3, 1e-2, 10};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(found.lifetimes[i].most_s / most[i], 1, 1e-9);
    EXPECT_DOUBLE_EQ(found.lifetimes[i].blocks, 3);
  }
}

// Held: 100 from 0 s, 300 from 2 s to 6 s, 100 until 8 s; then nothing.
TEST(Attribution, History_LiveBytesAndPeak) {
  HandMade made;
  made.recording.seconds = 10;
  const StackId a = made.stack({frame("a()")}), b = made.stack({frame("b()")});
  made.end(made.block(a, 10, 10), 8);
  BlockSample& second = made.block(b, 20, 10);
  second.began_s = 2;
  made.end(second, 6);
  const Attribution found = made.attribution();
  EXPECT_DOUBLE_EQ(found.peak_live_bytes, 300);
  EXPECT_DOUBLE_EQ(found.live_bytes_at_end, 0);
  ASSERT_EQ(found.history.size(), kHistoryPoints);
  const auto at = [&](double seconds) { return found.history[static_cast<std::size_t>(seconds * 20) - 1]; };
  EXPECT_NEAR(at(1).at_s, 1, 1e-9);
  EXPECT_DOUBLE_EQ(at(1).live_bytes, 100);
  EXPECT_DOUBLE_EQ(at(4).live_bytes, 300);
  EXPECT_DOUBLE_EQ(at(7).live_bytes, 100);
  EXPECT_DOUBLE_EQ(at(9).live_bytes, 0);
  EXPECT_NEAR(found.history[0].allocations_per_s, 10 / 0.05, 1e-9);
  EXPECT_NEAR(found.history[40].allocations_per_s, 20 / 0.05, 1e-9);
  for (const AllocationSite& site : found.sites)
    EXPECT_DOUBLE_EQ(site.live_bytes_at_peak, site.place.frame().function == "a()" ? 100 : 200);
}

TEST(Attribution, Waits_LocksApartFromIdleness) {
  HandMade made;
  made.recording.seconds = 1;
  made.recording.threads[1] = {.began_s = 0, .last_s = 1};
  made.recording.threads[2] = {.began_s = 0.5, .last_s = 1};
  const StackId taken = made.stack({frame("std::mutex::lock()"), frame("parse()", "parse.cpp", 33)});
  const StackId idle = made.stack({frame("std::condition_variable::wait(std::unique_lock<std::mutex>&)"), frame("work()")});
  made.recording.waits.push_back(
      {.weight = 100, .waited_s = 0.003, .kind = WaitKind::kMutex, .lock = 1, .thread = 1, .stack = taken});
  made.recording.waits.push_back(
      {.weight = 100, .waited_s = 0.003, .kind = WaitKind::kMutex, .lock = 1, .thread = 2, .stack = taken});
  made.recording.waits.push_back(
      {.weight = 1, .waited_s = 0.3, .kind = WaitKind::kCondition, .lock = 2, .thread = 2, .stack = idle});
  const Attribution found = made.attribution();
  EXPECT_DOUBLE_EQ(found.thread_s, 1.5);
  EXPECT_NEAR(found.lock_wait_s, 0.6, 1e-9);
  EXPECT_NEAR(found.lock_wait_share, 0.4, 1e-9);
  EXPECT_NEAR(found.idle_share, 0.2, 1e-9);
  ASSERT_EQ(found.lock_waits.size(), 1U);
  EXPECT_EQ(found.lock_waits[0].place.text(), "parse() at parse.cpp:33");
  EXPECT_DOUBLE_EQ(found.lock_waits[0].count, 200);
  EXPECT_NEAR(found.lock_waits[0].share, 0.4, 1e-9);
  ASSERT_EQ(found.idle_waits.size(), 1U);
  EXPECT_EQ(found.idle_waits[0].kind, WaitKind::kCondition);
}

TEST(Attribution, SharedLines_AHazardWhereNobodyUsesBoth) {
  HandMade made;
  made.recording.seconds = 1;
  made.recording.lines_watched = 10;
  const StackId a = made.stack({frame("a()")}), b = made.stack({frame("b()")});
  const auto shared = [&](std::uint64_t line, std::uint32_t one, std::uint32_t one_ended, std::uint32_t other,
                          std::uint32_t other_ended, double together_s = 0) {
    made.recording.shared_lines.push_back({.line = line,
                                           .threads = {one, other},
                                           .ending_threads = {one_ended, other_ended},
                                           .stacks = {a, b},
                                           .bytes = {16, 24},
                                           .together_s = together_s});
  };
  shared(1, 1, 1, 2, 2);
  shared(2, 1, 0, 2, 0, 0.5);
  shared(3, 1, 2, 2, 2);  // handed over to the thread that has the neighbour
  shared(4, 1, 3, 2, 3);  // both are the third thread's in the end
  shared(2, 1, 1, 3, 3);  // the same line again
  const Attribution found = made.attribution();
  EXPECT_EQ(found.lines_shared, 2U);
  EXPECT_DOUBLE_EQ(found.shared_line_share, 0.2);
  EXPECT_EQ(found.lines_shared_for_long, 1U);
  ASSERT_EQ(found.sharing.size(), 1U);
  EXPECT_EQ(found.sharing[0].places[0].frame().function, "a()");
  EXPECT_EQ(found.sharing[0].places[1].frame().function, "b()");
  EXPECT_EQ(found.sharing[0].bytes[0], 16U);
  EXPECT_EQ(found.sharing[0].bytes[1], 24U);
  EXPECT_EQ(found.sharing[0].lines, 2U);
  EXPECT_EQ(found.sharing[0].lines_for_long, 1U);
}

// A program of two processes, the second begun half a second later: other addresses, the same names.
TEST(Attribution, TwoProcesses_OneProgram) {
  HandMade parent, child;
  parent.recording.began_s = 100;
  parent.recording.seconds = 1;
  parent.recording.cpu_s = 0.8;
  child.recording.began_s = 100.5;
  child.recording.seconds = 1.5;
  child.recording.cpu_s = 0.2;
  child.stack({frame("unused()"), frame("unused()")});
  for (HandMade* made : {&parent, &child}) {
    BlockSample& block = made->block(made->stack({frame("work()"), frame("main")}), 1, 1000);
    block.call_ns = 1e8;
    made->end(block, 0.75);
  }
  const std::vector<Evidence> both{parent.evidence(), child.evidence()};
  const Attribution found = attribution_of(both);
  EXPECT_EQ(found.processes, 2U);
  EXPECT_DOUBLE_EQ(found.seconds, 2);
  EXPECT_DOUBLE_EQ(found.cpu_s, 1);
  EXPECT_NEAR(found.cpu_share, 0.2, 1e-9);
  ASSERT_EQ(found.sites.size(), 1U);
  EXPECT_DOUBLE_EQ(found.sites[0].time.calls, 2);
  EXPECT_DOUBLE_EQ(found.peak_live_bytes, 2000) << "both from 0.5 s to 0.75 s";
}

TEST(SiteAdvice, Recorded_PoolHeapOrNeither) {
  AllocationSite one_size;
  one_size.time_share = 0.5;
  one_size.freed_elsewhere = 0.9;
  one_size.typical_bytes = 48;
  one_size.fixed_size = true;
  one_size.median_lifetime_s = 0.1;
  AllocationSite many = one_size, handed_over = one_size, lasting = one_size, large = one_size, cold = one_size;
  many.fixed_size = handed_over.fixed_size = false;
  many.freed_elsewhere = 0;
  lasting.median_lifetime_s.reset();
  large.typical_bytes = kLargeBytes;
  cold.time_share = 0.01;
  const auto advised = [](std::vector<AllocationSite> sites) {
    Attribution recorded;
    recorded.sites = std::move(sites);
    recorded.cpu_share = 0.4;
    return advice_of(recorded);
  };
  EXPECT_EQ(name_of(advised({one_size})[0].fit), "pool");
  EXPECT_DOUBLE_EQ(advised({one_size})[0].cpu_share, 0.2);
  EXPECT_EQ(advised({many})[0].fit, SiteFit::kHeap);
  EXPECT_EQ(advised({handed_over})[0].fit, SiteFit::kNotOfManyFreed);
  EXPECT_EQ(advised({lasting})[0].fit, SiteFit::kNotOfLasting);
  EXPECT_EQ(name_of(advised({large})[0].fit), "neither");
  EXPECT_TRUE(advised({cold}).empty());
  EXPECT_EQ(advised({one_size, one_size, one_size, one_size}).size(), 3U);
}

}  // namespace
}  // namespace freehold::doctor
