// SPDX-License-Identifier: MIT
// freehold replay from outside: a trace of known shape through every memory, and files that are none.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/replay/advice.hpp"
#include "tests/cli/command.hpp"

namespace freehold::tests {
namespace {
using nlohmann::json;

Ended replay(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "replay");
  return freehold(std::move(arguments));
}

// Thread 0 allocates, thread 1 frees: `blocks` of them, sixteen alive, eight from the beginning and to the end.
json handed_over(int blocks, unsigned bytes = 48) {
  json steps = json::array();
  const auto step = [&steps](int thread, int block) {
    steps.push_back(thread);
    steps.push_back(block);
  };
  for (int i = 0; i < blocks; ++i) {
    step(0, -1);
    if (i >= 15 && i - 15 < blocks - 8) step(1, i - 15);
  }
  for (int i = blocks - 15; i < blocks - 8; ++i) step(1, i);
  return {{"format", "freehold-trace"},
          {"version", 1},
          {"traces",
           {{{"site", "parse() at <parse>.cpp:1"},
             {"bytes", bytes},
             {"threads", 2},
             {"blocks", blocks},
             {"peak_live", 16},
             {"set_up", 8},
             {"window_s", 1.0},
             {"cpu_share", 0.5},
             {"pair_ns", 100.0},
             {"steps", steps}}}}};
}

void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

TEST(Replay, EveryMemory_IsMeasuredAndNoBlockOverwritten) {
  const Folder folder;
  write(folder / "t.json", handed_over(20'000).dump());
  const Ended ended = replay({folder / "t.json", "--repeat", "1", "--json", folder / "r.json"});
  ASSERT_TRUE(ended.exited_with(0)) << ended.err;
  const json result = json::parse(content_of(folder / "r.json"));
  EXPECT_EQ(result["format"], "freehold-replay");
  EXPECT_EQ(result["advice"]["complete"], true);
  ASSERT_EQ(result["advice"]["sites"].size(), 1U);
  const json& site = result["advice"]["sites"][0];
  const std::set<std::string> expected{"baseline", "malloc", "libfreehold", "private-heap", "best", "tagged-stack"};
  std::set<std::string> found;
  for (const json& row : site["rows"]) {
    found.insert(row["name"]);
    EXPECT_TRUE(row["failure"].is_null()) << row;
    EXPECT_GT(row["pair_ns"], 0.0) << row;
    EXPECT_NE(ended.out.find(row["name"].get<std::string>()), std::string::npos);
  }
  EXPECT_EQ(found, expected) << "all but those for one thread";
  EXPECT_EQ(site["rows"].back()["name"], "baseline");
  EXPECT_NEAR(site["gain"].get<double>(), 0.5 * (1 - site["ratio"].get<double>()), 1e-9);
  EXPECT_NE(ended.out.find(site["best"].get<std::string>()), std::string::npos);
}

// A site's name may hold anything.
TEST(Replay, AdvisedCode_Compiles) {
  using namespace freehold::cli::replay;
  const Folder folder;
  for (const auto& [name, kind] : {std::pair("tagged-stack", Kind::kPool), std::pair("single-thread", Kind::kPool),
                                   std::pair("owner-locked-heap", Kind::kHeap)}) {
    const std::string code = code_for(name, kind, "f()\n#error */ at a.cpp:1", 48, 4096);
    write(folder / "advice.cpp", code);
    const std::string command = std::string(std::getenv("FREEHOLD_COMPILE")) + " " + (folder / "advice.cpp");
    EXPECT_EQ(std::system(command.c_str()), 0) << code;
  }
  EXPECT_EQ(code_for("libfreehold", Kind::kEngine, "f()", 48, 4096), "");
}

TEST(Replay, NoTrace_OneLineAndTheWayOut) {
  const Folder folder;
  const auto refused = [&](const std::string& text, const std::string& why) {
    write(folder / "bad.json", text);
    SCOPED_TRACE(text.substr(0, 100));
    expect_refused(replay({folder / "bad.json"}), why);
  };
  refused("", "--keep-recording");
  refused("{}", "--keep-recording");
  json trace = handed_over(100);
  trace["version"] = 2;
  refused(trace.dump(), "version");
  trace = handed_over(100, 0);
  refused(trace.dump(), "cannot be replayed");
  trace = handed_over(100);
  trace["traces"][0]["steps"].back() = 20;
  refused(trace.dump(), "a block ends that does not live");
  trace = handed_over(100);
  trace["traces"][0]["steps"].back() = "x";
  refused(trace.dump(), "not a trace");
  EXPECT_TRUE(replay({folder / "missing"}).exited_with(2));
  expect_refused(replay({folder / "."}), "no recording");
}

}  // namespace
}  // namespace freehold::tests
