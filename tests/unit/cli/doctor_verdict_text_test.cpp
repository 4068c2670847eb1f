// SPDX-License-Identifier: MIT
// The verdict in words.
#include "tests/support/test.hpp"
#include "tests/unit/cli/doctor_support.hpp"
#include "tools/doctor/report/format.hpp"
#include "tools/doctor/report/words.hpp"

namespace freehold::doctor::report {
namespace {

std::string joined(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& sentence : sentences) text += sentence + '\n';
  return text;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(VerdictText, OfRemoteFrees_AreThoseOfTheIssue) {
  const Words words = words_of(diagnosis_with(Cause::kRemoteFrees));
  EXPECT_EQ(
      words.headline,
      "The allocator explains 60% (50 to 70%) of the time that this program loses on several CPUs: threads free blocks "
      "that other threads allocated, which its malloc makes them pay for.");
  ASSERT_GE(words.because.size(), 3u);
  EXPECT_EQ(
      words.because[0],
      "On 4 CPUs it runs 1.6 times (1.5 to 1.7) as fast as on 1 CPU, where 4 would be ideal: 60% (57 to 62%) of its time "
      "there is lost.");
  EXPECT_EQ(words.because[1],
            "malloc and free take 37% of its CPU time, and its threads sleep in them for 15% of their time.");
  EXPECT_EQ(words.because[2],
            "83% of the frees cross threads: another thread allocated the block, nearly all at parse.cpp:210.");
  EXPECT_EQ(words.gain, "1.9 times (1.8 to 2.0) as fast with Freehold; jemalloc cannot be told apart from it.");
  EXPECT_EQ(words.advice, "Run it with Freehold, or link Freehold into it.");
}

TEST(VerdictText, OfEveryCause_SayFirstWhetherItIsTheAllocator) {
  for (std::size_t i = 0; i < freehold::doctor::kCauses; ++i) {
    const auto cause = static_cast<Cause>(i);
    const std::string line = words_of(diagnosis_with(cause)).headline;
    const std::string first = cause == Cause::kUndecided ? "Undecided"
                              : blames_allocator(cause)  ? "The allocator"
                                                         : "Not the allocator";
    EXPECT_EQ(line.substr(0, first.size()), first) << name_of(cause);
    EXPECT_EQ(line.back(), '.') << line;
    EXPECT_FALSE(text_of(cause).empty());
  }
}

TEST(VerdictText, BoundToOneCpu_SaysThatAndWhatToDo) {
  Diagnosis d = diagnosis_with(Cause::kCpuQuota);
  d.experiment.affinity_cpus = 4;
  EXPECT_FALSE(has(words_of(d).headline, "bound"));
  d.experiment.own_cpus = 1;
  EXPECT_EQ(words_of(d).headline,
            "Not the allocator: the program's threads are bound to 1 of 4 CPUs, by the program or a library that it loads.");
  EXPECT_TRUE(has(words_of(d).advice, "sched_setaffinity()")) << words_of(d).advice;
}

// A Python whose threads keep 3.6 of 4 CPUs busy, in NumPy for example, does not wait for the interpreter.
TEST(VerdictText, InterpreterLock_IsNamedOnlyWhereItIsSeen) {
  const std::string named = "interpreter's lock (the GIL)";
  for (const Cause cause : {Cause::kOwnLock, Cause::kSerial}) {
    Diagnosis d = diagnosis_with(cause);
    EXPECT_FALSE(has(words_of(d).headline, named)) << words_of(d).headline;
    auto recorded = attribution_with(3);
    recorded.lock_waits[0].share = 0.5;
    recorded.lock_waits[0].place.stacks[0].frames[1].function = "take_gil";
    d.recorded = std::make_shared<const Attribution>(recorded);
    EXPECT_TRUE(has(words_of(d).headline, named)) << "its threads wait there";
  }
  Diagnosis d = diagnosis_with(Cause::kOwnLock);
  for (auto& cell : d.experiment.cells)
    for (auto& trial : cell.trials) trial.user_s = trial.wall_s, trial.system_s = 0;
  EXPECT_TRUE(has(words_of(d).headline, named)) << "one runs at a time, and no other lock is seen";
  auto recorded = attribution_with(3);
  recorded.lock_waits[0].share = 0.5;
  d.recorded = std::make_shared<const Attribution>(recorded);
  EXPECT_TRUE(has(words_of(d).headline, "taken at queue.hpp:33")) << words_of(d).headline;
}

TEST(VerdictText, Bound_SaysHowItWasFound) {
  Diagnosis d = diagnosis_with(Cause::kOwnLock);
  d.verdict.most_gain = Estimate{1, 1.1, 1.2};
  EXPECT_EQ(words_of(d).bound, "") << "a treatment helps";
  d.verdict.best_fix.reset();
  EXPECT_EQ(words_of(d).bound, "No allocator can make it more than 20% faster, found by making malloc and free slower.");
  d.experiment.delayed.clear();
  EXPECT_EQ(words_of(d).bound,
            "No allocator can make it more than 20% faster, as malloc's recorded share of its time says.");
  d.recorded.reset();
  EXPECT_EQ(words_of(d).bound, "No allocator can make it more than 20% faster, as samples of its code say.");
  d.verdict.most_gain.reset();
  EXPECT_EQ(words_of(d).bound,
            "How much any allocator could do is not known: there was no time to record its malloc. A longer --budget "
            "includes it.");
  d.notes = {"Nothing was recorded: calls of a malloc that is built into the program cannot be seen from outside."};
  EXPECT_EQ(
      words_of(d).bound,
      "How much any allocator could do is not known: its malloc could not be recorded, and its code could not be sampled.");
  d.experiment.code.known = true;
  EXPECT_EQ(words_of(d).bound,
            "How much any allocator could do is not known: its malloc could not be recorded, and its "
            "threads sleep in locks, which may be malloc's.");
}

// Ctrl-C, or the end of the budget, before the program ran on one CPU: the machine has several all the same.
TEST(VerdictText, EndedBeforeTheSecondSetting_SayThatNotThatThereIsOneCpu) {
  Diagnosis d = diagnosis_with(Cause::kUndecided);
  d.verdict.alone = d.verdict.all;
  d.experiment.complete = false;
  d.settings.budget_s = 20;
  EXPECT_EQ(words_of(d).headline, "No verdict: there was no time to run the program with different numbers of CPUs.");
  EXPECT_EQ(words_of(d).advice, "Give it more time (--budget).");
  EXPECT_EQ(words_of(d).steps.front().lines, "freehold doctor --budget 60 -- ./bin/parser --input 'two words.txt'");
  d.signal = 2;
  EXPECT_EQ(words_of(d).headline,
            "No verdict: the doctor was interrupted before the program had run with different numbers of CPUs.");
  EXPECT_EQ(words_of(d).advice, "Ask again, and let it finish.");
  EXPECT_EQ(words_of(d).steps.front().lines, "freehold doctor -- ./bin/parser --input 'two words.txt'");
  EXPECT_FALSE(has(joined(words_of(d).findings), "--budget")) << joined(words_of(d).findings);
}

// A line to paste asks what was asked, or it examines something else.
TEST(Recommendations, ToAskAgain_KeepWhatWasAsked) {
  Diagnosis d = diagnosis_with(Cause::kUndecided);
  d.verdict.best_fix.reset();
  d.settings.command = {"./serve", "-t", "{n}"};
  d.settings.parallelism = freehold::doctor::ParallelismControl::kArgument;
  d.settings.widths = {1, 8};
  d.settings.work = freehold::doctor::Work::kFixed;
  d.settings.input = "in put";
  d.settings.allow_failure = true;
  d.settings.server = {.seconds = 2.5, .load = "wrk -d 5", .ready = "curl localhost", .throughput = "rate: ([0-9]+)"};
  EXPECT_EQ(words_of(d).steps.front().lines,
            "freehold doctor --repeat 15 --threads 1,8 --work fixed --load 'wrk -d 5' --ready 'curl localhost' --for 2.5 "
            "--throughput 'rate: ([0-9]+)' --allow-failure -- ./serve -t '{n}' < 'in put'");
  d.settings = {};
  d.settings.command = {"./p"};
  d.settings.parallelism = freehold::doctor::ParallelismControl::kEnvironment;
  d.settings.parallelism_text = "OMP_NUM_THREADS";
  d.settings.widths = {1, 4};
  EXPECT_EQ(words_of(d).steps.front().lines, "freehold doctor --repeat 15 --threads 1,4 --env OMP_NUM_THREADS -- ./p");
}

TEST(VerdictText, WithoutEnoughToSay_SayNoMore) {
  Diagnosis d = diagnosis_with(Cause::kUndecided);
  d.experiment.cells.front().trials.clear();
  d.experiment.cells.front().failure = "exit code 3";
  EXPECT_EQ(words_of(d).headline, "No verdict: the program itself fails (exit code 3).");
  EXPECT_TRUE(words_of(d).gain.empty());
  EXPECT_TRUE(words_of(d).steps.empty());
  d = diagnosis_with(Cause::kUndecided);
  d.verdict.best_fix.reset();
  d.verdict.fixes[1].gain = {0.9, 1.05, 1.2};
  d.verdict.fixes[1].helps = false;
  d.verdict.fixes[2].failed = true;
  EXPECT_TRUE(words_of(d).gain.empty());
  EXPECT_EQ(judgement_of(d.verdict.fixes[1]), "may be chance");
  EXPECT_EQ(judgement_of(d.verdict.fixes[2]), "the program fails");
  EXPECT_TRUE(has(words_of(d).advice, "--repeat"));
  EXPECT_EQ(words_of(d).steps.front().lines, "freehold doctor --repeat 15 -- ./bin/parser --input 'two words.txt'");
  d.verdict.doubt = Doubt::kBusyMachine;
  EXPECT_EQ(words_of(d).steps.front().lines, "freehold doctor --ahead-of-others -- ./bin/parser --input 'two words.txt'");
}

TEST(Recommendations, ThatUseFreehold_AreExact) {
  Diagnosis d = diagnosis_with(Cause::kAllocatorLock);
  d.settings.command = {"./bin/parser", "-t{n}"};
  d.settings.parallelism = freehold::doctor::ParallelismControl::kArgument;
  const std::vector<Step> steps = words_of(d).steps;
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0].lines, "freehold run -- ./bin/parser -t4");
  EXPECT_EQ(steps[1].lines, "LD_PRELOAD=/usr/lib/libfreehold.so ./bin/parser -t4");
  EXPECT_TRUE(has(steps[2].lines, "target_link_libraries(parser PRIVATE freehold::malloc)"));
  d.verdict.best_fix = 0;
  EXPECT_EQ(words_of(d).steps.front().lines, "MALLOC_ARENA_MAX=2 ./bin/parser -t4");
  EXPECT_EQ(words_of(d).steps.size(), 4u);  // and Freehold, which helps, too
}

TEST(DoctorFindings, OfWhatWentWrong_AreAllThere) {
  Diagnosis d = diagnosis_with(Cause::kAllocatorLock);
  d.verdict.noisy = true;
  d.experiment.complete = false;
  d.signal = 2;
  d.experiment.cells.back().trials.resize(1);
  d.experiment.cells[14].failure = "SIGSEGV";
  auto recorded = attribution_with(3);
  recorded.dropped = 1'234'567;
  d.recorded = std::make_shared<const Attribution>(recorded);
  const std::string text = joined(words_of(d).findings);
  for (const char* part :
       {"Interrupted", "With jemalloc and 3 CPUs the program ended otherwise than it does by itself: SIGSEGV.",
        "busy with something else", "run only once", "would change: 0.6 times with glibc with 2 arenas (memory pools)",
        "6% slower", "1.2 million records", "counter.cpp:8"})
    EXPECT_TRUE(has(text, part)) << part << "\n" << text;
}

TEST(Format, AreNoMoreExactThanTheirRange) {
  EXPECT_EQ(percent_text(Estimate{0.5, 0.61, 0.7}), "60% (50 to 70%)");
  EXPECT_EQ(percent_text(Estimate{0.605, 0.612, 0.622}), "61% (61 to 62%)");
  EXPECT_EQ(percent_text(Estimate{0.2, 0.43, 0.71}), "40% (20 to 70%)");
  EXPECT_EQ(percent_text(Estimate{0.3, 0.3, 0.3}), "30%");
  EXPECT_EQ(percent_text(0.001), "less than 1%");
  EXPECT_EQ(times_text({1.8, 1.9, 2.0}), "1.9 times (1.8 to 2.0)");
  EXPECT_EQ(times_text({1.91, 1.93, 1.94}), "1.93 times (1.91 to 1.94)");
  EXPECT_EQ(times_text({4.2, 7.1, 9.8}), "7 times (4 to 10)");
  EXPECT_EQ(times_text({0.7, 1.4, 4.8}), "1.4 times (0.7 to 4.8)") << "faster or slower must be seen";
  EXPECT_EQ(times_text({1.9, 1.9, 1.9}), "1.9 times");
  EXPECT_EQ(seconds_text(0.0831), "83.1 ms");
  EXPECT_EQ(count_text(3400), "3,400");
  EXPECT_EQ(count_text(1.23e6), "1.2 million");
}

}  // namespace
}  // namespace freehold::doctor::report
