// SPDX-License-Identifier: MIT
// freehold doctor in a job: exit codes of --fail-on, the page of --summary, and compare, on stored reports and on short
// runs.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/measured.hpp"

namespace freehold::tests {
namespace {
using nlohmann::ordered_json;

Ended doctor(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "doctor");
  return freehold(std::move(arguments));
}

// One run's report, for all tests: then its figures are set to what a test is about.
ordered_json real_report() {
  static const ordered_json report = doctor_report({"--repeat", "2", "--allocators", "freehold"}, {example(), "20000"});
  return report;
}

TEST(DoctorGate, FileThatIsNoReport_OneLine) {
  const Folder folder;
  ordered_json damaged = real_report();
  damaged["verdict"].erase("lost");
  ordered_json wrong = real_report();
  wrong["experiment"]["cells"] = "none";
  for (const std::string& file :
       {folder / "missing", folder.file("empty", ""), folder.file("text", "{"), folder.file("list", "[1]"),
        folder.file("other", "{\"schema\": \"other/1\"}"), folder.file("damaged", damaged.dump()),
        folder.file("wrong", wrong.dump()), std::string("/")}) {
    SCOPED_TRACE(file);
    expect_refused(doctor({"compare", file, file}), "freehold doctor --json");
  }
}

TEST(DoctorGate, OfARun_IsAskedAtItsEnd) {
  const Folder folder;
  const Ended ended = doctor({"--repeat", "2", "--allocators", "freehold", "--summary", folder / "page.md", "--fail-on",
                              "cpu-quota,undecided", "--", example(), "20000"});
  EXPECT_TRUE(ended.exited_with(0) || ended.exited_with(1)) << ended.status << ended.err << ended.out;
  EXPECT_NE(ended.out.find("s: --fail-on cpu-quota,undecided: the cause is "), std::string::npos) << ended.out;
  const std::string page = content_of(folder / "page.md");
  EXPECT_TRUE(page.starts_with("## freehold doctor: ")) << page;
  EXPECT_NE(page.find("freehold-doctor-example 20000\n"), std::string::npos) << page;
  EXPECT_NE(page.find("--fail-on cpu-quota,undecided: the cause is "), std::string::npos) << page;
}

TEST(DoctorCompare, StoredReports_SayWhatChanged) {
  const Folder folder;
  ordered_json slower = real_report();
  for (auto& cell : slower["experiment"]["cells"]) {
    for (auto& trial : cell["trials"]) {
      for (const char* const time : {"wall_s", "user_s", "system_s", "taken_s"})
        trial[time] = 100 * trial[time].get<double>();
    }
  }
  const std::string before = folder.file("a.json", real_report().dump()), after = folder.file("b.json", slower.dump());
  const Ended ended =
      doctor({"compare", before, after, "--json", folder / "c.json", "--worse-than", "100%", "--summary", folder / "c.md"});
  EXPECT_TRUE(ended.exited_with(1)) << ended.status << ended.err << ended.out;
  EXPECT_NE(ended.out.find("Slower: it takes 100"), std::string::npos) << ended.out;
  const ordered_json comparison = ordered_json::parse(content_of(folder / "c.json"));
  EXPECT_EQ(comparison.at("changes").at(0).at("name"), "time");
  EXPECT_NEAR(comparison.at("changes").at(0).at("ratio").at("value").get<double>(), 100, 1e-6);
  EXPECT_NE(content_of(folder / "c.md").find("❌ fails"), std::string::npos);
  EXPECT_TRUE(doctor({"compare", before, before, "--worse-than", "900%"}).exited_with(0));
}

TEST(DoctorCompare, TwoCommands_InTurns) {
  const Folder folder;
  const std::string script = folder.file("prog", "#!/bin/sh\necho \"$1\" >> " + folder / "calls" + "\n", 0755);
  const Ended ended = doctor(
      {"compare", "--repeat", "3", "--before", script + " old", "--after", script + " new", "--json", folder / "c.json"});
  EXPECT_TRUE(ended.exited_with(0)) << ended.status << ended.err;
  // One of each to warm up, then old new, new old, old new on all CPUs, each followed by the same on one CPU.
  const std::string calls = content_of(folder / "calls");
  EXPECT_EQ(calls.substr(0, 40), "old\nnew\nold\nnew\nold\nnew\nnew\nold\nnew\nold\n") << calls;
  EXPECT_EQ(ordered_json::parse(content_of(folder / "c.json")).at("before").at("trials"), 3);
}

TEST(DoctorCompare, BadArguments_OneLineAndExit2) {
  const Folder folder;
  const std::string report = folder.file("r.json", real_report().dump());
  ordered_json other = real_report();
  other["verdict"]["all"]["cpus"] = 77;
  const std::vector<std::vector<std::string>> bad{
      {},
      {report},
      {report, report, report},
      {report, report, "--before", "true", "--after", "true"},
      {report, report, "--budget", "5s"},
      {report, folder.file("o.json", other.dump())},
      {"--before", "true"},
      {"--before", "true", "--after", "'true"},
      {"--before", "true", "--after", ""},
      {"--before", "true", "--after", "false"},
      {"--before", "true", "--after", "true", "--budget", "0"},
      {"--before", "true", "--after", "true", "--budget", "5", "--repeat", "2"},
      {"--before", "true", "--after", "true", "--worse-than", "10"},
      {report, report, "--summary", "/no/such/folder/x"},
      {report, report, "--bogus"},
  };
  for (auto arguments : bad) {
    arguments.insert(arguments.begin(), "compare");
    SCOPED_TRACE(arguments.back());
    expect_refused(doctor(arguments), "");
  }
  EXPECT_TRUE(doctor({"compare", "--before", "true", "--after", "/no/such/program"}).exited_with(127));
}

}  // namespace
}  // namespace freehold::tests
