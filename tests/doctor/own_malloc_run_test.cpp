// SPDX-License-Identifier: MIT
// The verdicts of freehold doctor on programs that bring an allocator along, and the treatments that it tries with them.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/cli/measured.hpp"

namespace freehold::tests {
namespace {
namespace fs = std::filesystem;
using nlohmann::json;

json report_of(const std::vector<std::string>& program, std::vector<std::string> options = {"--allocators", "freehold"}) {
  options.insert(options.end(), {"--repeat", "1"});
  return doctor_report(std::move(options), program);
}

bool has_note(const json& report, const std::string& words) {
  for (const json& note : report.at("notes"))
    if (note.get<std::string>().find(words) != std::string::npos) return true;
  return false;
}

// Counting takes a privilege; without it the report says that nothing was counted, and why.
void expect_reach(const json& own, double least, double most) {
  if (own.at("reached").is_null()) {
    EXPECT_NE(own.at("text").get<std::string>().find("was not counted: the kernel"), std::string::npos) << own;
    return;
  }
  EXPECT_GE(own.at("reached"), least) << own;
  EXPECT_LE(own.at("reached"), most) << own;
}

TEST(DoctorOwnMalloc, LinkedStatically_PreloadReachesNothing) {
  const json report = report_of({FREEHOLD_WITH_JEMALLOC});
  ASSERT_EQ(report.at("own_allocators").size(), 1u);
  EXPECT_EQ(report["own_allocators"][0].at("name"), "jemalloc");
  expect_reach(report["own_allocators"][0], 0, 0.01);
  EXPECT_TRUE(has_note(report, "brings jemalloc")) << report.at("notes");
}

TEST(DoctorOwnMalloc, Python_ItsSwitchIsATreatment) {
  const std::string python = "/usr/bin/python3";
  if (!fs::exists(python)) GTEST_SKIP() << "no Python";
  const std::string work = "x = [str(i) for i in range(200000)]";
  const json report = report_of({python, "-S", "-c", work}, {});
  std::set<std::string> names;
  for (const json& variant : report.at("experiment").at("variants")) names.insert(variant.at("name"));
  EXPECT_TRUE(names.contains("PYTHONMALLOC=malloc"));
  EXPECT_TRUE(names.contains("freehold, PYTHONMALLOC=malloc"));
  EXPECT_TRUE(has_note(report, "CPython's allocator")) << report.at("notes");
  ASSERT_EQ(report.at("own_allocators").size(), 1u);
  EXPECT_LT(report["own_allocators"][0].at("reached"), 0.5);
  EXPECT_GT(report["own_allocators"][0].at("calls"), 150'000);
  // With the switch all of it arrives at malloc: this is what the recorded run sees then.
  const auto calls = [](const json& of) { return of.at("recording").at("allocating").at("calls").get<double>(); };
  const json switched = report_of({"/usr/bin/env", "PYTHONMALLOC=malloc", python, "-S", "-c", work});
  EXPECT_GT(calls(switched), 200'000);
  EXPECT_LT(calls(report), 0.5 * calls(switched));
}

TEST(DoctorOwnMalloc, SwitchByName_IsTried) {
  const json report = report_of({"/usr/bin/python3", "-S", "-c", "pass"}, {"--allocators", "PYTHONMALLOC=malloc"});
  EXPECT_EQ(report.at("experiment").at("variants").at(1).at("name"), "PYTHONMALLOC=malloc");
}

TEST(DoctorOwnMalloc, Java_HeapIsNotReached) {
  if (!fs::exists("/usr/bin/java")) GTEST_SKIP() << "no Java";
  const json report = report_of({"/usr/bin/java", "-Xshare:auto", "-version"});
  ASSERT_EQ(report.at("own_allocators").size(), 1u);
  EXPECT_EQ(report["own_allocators"][0].at("name"), "the JVM's heap");
  EXPECT_TRUE(report["own_allocators"][0].at("reached").is_null());
}

TEST(DoctorOwnMalloc, Rust_AllocatesByMalloc) {
  const Folder folder;
  const std::string source =
      folder.file("main.rs",
                  "fn main() { let mut n = 0; for i in 0..100000usize { let v = vec![1u8; 16 + i % 90]; "
                  "n += std::hint::black_box(&v).len(); } assert!(n > 0); }");
  if (std::system(("cd " + folder / "." + " && rustc -O -o main main.rs >/dev/null 2>&1").c_str()) != 0)
    GTEST_SKIP() << "no Rust";
  const json report = report_of({folder / "main"});
  EXPECT_TRUE(report.at("own_allocators").empty()) << report["own_allocators"];
  EXPECT_GE(report.at("recording").at("allocating").at("calls"), 90'000);
}

TEST(DoctorOwnMalloc, StaticGoProgram_OneLine) {
  const std::string go = fs::exists("/usr/bin/go") ? "/usr/bin/go" : "/usr/local/go/bin/go";
  if (!fs::exists(go)) GTEST_SKIP() << "no Go";
  const Ended ended = freehold({"doctor", "--", go, "version"});
  if (ended.exited_with(0)) GTEST_SKIP() << "this one is not static";
  expect_refused(ended, "Go's own heap");
}

}  // namespace
}  // namespace freehold::tests
