// SPDX-License-Identifier: MIT
// The sentences of `freehold doctor --memory`: what is advised fits the cause, and nothing else is.
#include <nlohmann/json.hpp>

#include "tests/support/test.hpp"
#include "tests/unit/cli/memory_support.hpp"
#include "tools/doctor/report/memory.hpp"

namespace freehold::doctor::report {
namespace {
using freehold::doctor::MemoryCause;
using freehold::doctor::MemoryFact;
using tests::kMiB;

std::string text_of(const MemoryDiagnosis& diagnosis) { return report::text_of(document_of(diagnosis, Gate{})); }

std::string advice_for(MemoryCause cause, MemoryDiagnosis d = tests::memory_diagnosis()) {
  d.verdict.cause = cause;
  return advice_of(d);
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(MemoryAdvice, CauseIsNotMallocs_NoTreatmentIsNamed) {
  ASSERT_TRUE(has(advice_for(MemoryCause::kHoles), "freehold helps most"));
  for (const MemoryCause cause :
       {MemoryCause::kMappings, MemoryCause::kStacks, MemoryCause::kFiles, MemoryCause::kShared, MemoryCause::kPageTables}) {
    const std::string advice = advice_for(cause);
    EXPECT_FALSE(has(advice, "tried")) << advice;
    EXPECT_TRUE(advice.ends_with(".")) << advice;
  }
}

TEST(MemoryAdvice, ProgramWithAnAllocatorOfItsOwn_SaysHowItIsSeen) {
  MemoryDiagnosis d = tests::memory_diagnosis();
  EXPECT_TRUE(has(advice_for(MemoryCause::kMappings, d), "mmap"));
  d.own = {.name = "CPython's allocator", .program = "python3.11", .use_malloc = "PYTHONMALLOC=malloc"};
  EXPECT_TRUE(has(advice_for(MemoryCause::kMappings, d), "PYTHONMALLOC=malloc")) << advice_for(MemoryCause::kMappings, d);
  EXPECT_FALSE(has(advice_for(MemoryCause::kMappings, d), "mmap"));
  d.own = {.name = "the JVM's heap", .program = "libjvm.so", .use_malloc = {}};
  EXPECT_TRUE(has(advice_for(MemoryCause::kMappings, d), "what the JVM's heap holds"));
}

TEST(MemoryEffect, TreatmentThatWasNotRun_IsSaidSoEverywhere) {
  MemoryDiagnosis d = tests::memory_diagnosis();
  nlohmann::ordered_json failed = json_of(d).at("fixes").at(1);
  EXPECT_EQ(failed.at("text"), "failed: signal 11");
  EXPECT_TRUE(failed.at("saved_bytes").is_null());
  d.experiment.cells[2].failure.clear();
  d.verdict.fixes[1].failed = false;
  const nlohmann::ordered_json fix = json_of(d).at("fixes").at(1);
  EXPECT_EQ(fix.at("text"), "not run");
  EXPECT_TRUE(fix.at("saved_bytes").is_null());
  EXPECT_TRUE(fix.at("peak_saved_bytes").is_null());
  EXPECT_TRUE(has(text_of(d), "jemalloc  not run")) << text_of(d);
  EXPECT_TRUE(has(markdown_of(document_of(d, Gate{})), "| jemalloc | not run |")) << markdown_of(document_of(d, Gate{}));
}

TEST(MemorySummary, RecordingThatIsNotWhole_SaysSoAndNotWhatIsLive) {
  MemoryDiagnosis d = tests::memory_diagnosis();
  d.verdict.cause = MemoryCause::kUndecided;
  d.verdict.missing = MemoryFact::kDropped;
  d.experiment.record->dropped = 12;
  EXPECT_TRUE(has(headline_of(d), "undecided: the recording is not whole")) << headline_of(d);
  EXPECT_FALSE(has(text_of(d), "holes")) << text_of(d);
  EXPECT_TRUE(has(text_of(d), "in malloc: free, or live and not recorded")) << text_of(d);
  EXPECT_EQ(json_of(d).at("verdict").at("missing"), "dropped");
  EXPECT_EQ(json_of(d).at("recording").at("dropped"), 12);
}

TEST(MemorySummary, FreeMemoryThatWasNotDivided_IsNotCalledHoles) {
  MemoryDiagnosis d = tests::memory_diagnosis();
  EXPECT_TRUE(has(text_of(d), "holes between live blocks"));
  d.verdict.is_divided = false;
  d.verdict.cause = MemoryCause::kUndecided;
  d.verdict.missing = MemoryFact::kDivided;
  EXPECT_FALSE(has(text_of(d), "holes")) << text_of(d);
  EXPECT_TRUE(has(headline_of(d), "arenas, caches, trimmed")) << headline_of(d);
  EXPECT_TRUE(has(text_of(d), "freehold doctor --memory --repeat 5 -- /usr/bin/store data")) << text_of(d);
}

}  // namespace
}  // namespace freehold::doctor::report
