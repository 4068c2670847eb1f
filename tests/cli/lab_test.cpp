// SPDX-License-Identifier: MIT
// freehold articles and simulate from outside, and of all experiments: bad arguments, and Ctrl-C in the middle of one.
// experiments_test.cpp tests what the others measure.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <thread>

#include "tests/cli/measured.hpp"
#include "tests/cli/terminal.hpp"

namespace freehold::tests {
namespace {
using nlohmann::json;
using Words = std::vector<std::string>;

void expect_refused(const std::string& line) {
  SCOPED_TRACE(line);
  tests::expect_refused(freehold(words_of(line)), "");
}

TEST(Lab, BadArguments_OneLineAndExit2) {
  const std::map<std::string, std::vector<std::string>> bad{
      {"scale",
       {"--workers 0", "--workers 1,,2", "--workers ''", "--workers many", "--iterations 0", "--iterations 2",
        "--iterations -24", "--repeat 1e3", "--time 0", "--tests dance", "--mode fibers",
        "--mode processes --tests handover", "--via telepathy", "--via pool --workers 1024 --iterations 1024",
        "--allocators nomalloc", "--allocators /no/lib", "--allocators ''", "--allocators system,system"}},
      {"pools",
       {"--pools no-such-pool", "--pools ''", "--pools baseline --tests ring", "--tests dance", "--contexts fresh,,full",
        "--threads 0", "--operations many", "--operations -1", "--slot-bytes 1", "--time 0", "--crc-threads 1",
        "--crc-pools 0", "--crc-reads 0"}},
      {"timers",
       {"--timers no-such-queue", "--timers ''", "--timers libuv --tests shared", "--tests dance", "--loads alone,,heap",
        "--loads heap --background 0", "--count 0", "--live many", "--users 0", "--background -1", "--time 0"}},
      {"articles", {"--articles 6", "--articles 0", "--articles ''", "--articles 1,,2"}},
      {"simulate",
       {"--workload dance", "--workload ''", "--size 0", "--size 1048577", "--size 64,,16", "--cores 0", "--cores 385",
        "--cores few", "--quantum 0", "--pairs 0", "--pairs -1", "--places 0", "--places all"}}};
  for (const auto& [experiment, each] : bad) {
    for (const std::string& words : each) expect_refused(experiment + ' ' + words);
    for (const char* words : {" --bogus", " stray", " --json", " --json /no/such/folder/x"})
      expect_refused(experiment + words);
    if (experiment == "simulate") continue;  // it has no sets and no page
    for (const char* words : {" --repeat 0", " --html /", " --html -"}) expect_refused(experiment + words);
  }
}

// A line that the parser takes fails at the file that it cannot write, or for a library that is not installed.
TEST(Lab, CommandLinesOfThePages_AreTaken) {
  std::size_t lines = 0;
  for (const auto& [page, line_of] :
       {std::pair("index.md", "\\| `freehold ([^`]+)`"), std::pair("articles.md", "\n    freehold ([^#&\n]+)")}) {
    const std::string text = content_of(std::string(FREEHOLD_DOCS) + page);
    const std::regex form(line_of);
    for (std::sregex_iterator line(text.begin(), text.end(), form), end; line != end; ++line, ++lines) {
      Words words = words_of(std::regex_replace((*line)[1].str(), std::regex(" --(json|html) [^ ]+"), ""));
      const auto program = std::ranges::find(words, "--");
      if (program != words.end()) words.erase(program + 1, words.end()), words.emplace_back("true");
      words.insert(std::ranges::find(words, "--"), {"--html", "/no/such/folder/x.html"});
      const Ended ended = freehold(words);
      EXPECT_TRUE(ended.exited_with(2)) << (*line)[0];
      EXPECT_TRUE(ended.err.find("/no/such/folder") != std::string::npos || ended.err.find("jemalloc") != std::string::npos)
          << (*line)[0] << '\n'
          << ended.err;
    }
  }
  EXPECT_GE(lines, 11u);
}

TEST(Lab, CtrlC_KeepsWhatIsFinished) {
  const struct {
    Words words;
    std::string progress;
    std::size_t samples;  // samples of the whole run
  } runs[] = {
      {{"scale", "--time", "2", "--tests", "allocate", "--workers", "2"}, "  20/8000  allocate, ", 8000},
      {{"pools", "--operations", "500", "--tests", "pair", "--pools", "tagged-stack,boost-pool"}, "  20/2000  pair, ", 2000},
      {{"timers", "--timers", "article,queue", "--tests", "rearm", "--live", "100", "--background", "0", "--time", "1"},
       "  20/2000  rearm, 100",
       2000}};
  for (const auto& run : runs) {
    SCOPED_TRACE(run.words.front());
    const Folder folder;
    Words words = run.words;
    words.insert(words.end(), {"--repeat", "1000", "--json", folder / "r.json", "--html", folder / "r.html"});
    OnATerminal command(words);
    ASSERT_TRUE(command.wait_for(run.progress)) << command.seen();
    std::jthread again([&](const std::stop_token& stop) {  // as timeout does, while it writes
      for (int i = 0; i < 10 && !stop.stop_requested(); ++i, std::this_thread::sleep_for(std::chrono::milliseconds(10)))
        command.type(kCtrlC);
    });
    EXPECT_EQ(command.exit_code(), 130);
    EXPECT_NE(command.seen().find("Interrupted"), std::string::npos) << command.seen();
    const json results = results_in(folder / "r.json");
    EXPECT_EQ(results.at("complete"), false);
    std::size_t samples = 0;
    for (const json& series : results.at("series")) {
      EXPECT_TRUE(series.at("failure").is_null()) << series;
      for (const json& sample : series.at("samples")) samples += sample.is_null() ? 0 : 1;
    }
    EXPECT_GE(samples, 19u);
    EXPECT_LT(samples, run.samples);
    EXPECT_EQ(folder.names(), (Words{"r.html", "r.json"}));
  }
}

TEST(Articles, Quick_EveryClaimIsMeasuredAndWritten) {
  const std::set<std::string> known{"reproduced", "refuted", "undecided", "not testable"};
  for (int article = 1; article <= 5; ++article) {  // one by one: each has the time of a command
    const std::string name = std::to_string(article), head = "ARTICLE " + name;
    const json results = measured({"articles", "--quick", "--articles", name}, {head.c_str()});
    int claims = 0;
    for (const json& claim : results.at("claims")) {
      EXPECT_TRUE(known.contains(claim.at("verdict"))) << claim;
      EXPECT_EQ(claim.at("verdict") == "not testable", claim.at("figure").is_null()) << claim;
      EXPECT_FALSE(claim.at("limits").is_null()) << claim;
      EXPECT_EQ(claim.at("article"), article);
      ++claims;
    }
    EXPECT_GE(claims, 7) << article;
  }
}

TEST(Articles, CtrlC_KeepsWhatIsFinished) {
  const Folder folder;
  OnATerminal command({"articles", "--articles", "3,5", "--quick", "--repeat", "1000", "--json", folder / "r.json"});
  ASSERT_TRUE(command.wait_for("  20/")) << command.seen();
  command.type(kCtrlC);
  EXPECT_EQ(command.exit_code(), 130);
  const json results = results_in(folder / "r.json");
  EXPECT_EQ(results.at("complete"), false);
  for (const json& claim : results.at("claims")) EXPECT_EQ(claim.at("article"), 3);
}

TEST(Simulate, SomeRows_TableAndJson) {
  const Folder folder;
  const auto rows = [&] {
    const Ended ended = freehold(
        {"simulate", "--workload", "own,producer", "--size", "64,32768", "--cores", "1,4,8", "--json", folder / "s.json"});
    EXPECT_TRUE(ended.exited_with(0)) << ended.err;
    EXPECT_EQ(ended.err, "");  // progress is for terminals
    for (const char* word : {"MISSES", "LOCKS", "producer", "32768", "flat", "grows"})
      EXPECT_NE(ended.out.find(word), std::string::npos) << word << '\n' << ended.out;
    const json results = results_in(folder / "s.json");
    EXPECT_EQ(results.at("format"), "freehold-simulate");
    EXPECT_EQ(results.at("complete"), true);
    return results.at("rows");
  };
  const json first = rows();
  ASSERT_EQ(first.size(), 4u);
  for (const json& row : first) {
    ASSERT_EQ(row.at("counts").size(), 3u);
    EXPECT_EQ(row.at("counts")[0].at("misses"), 0.0) << "one core takes no lines from others";
    for (const json& count : row.at("counts")) EXPECT_GT(count.at("pairs"), 0);
  }
  EXPECT_EQ(first[0].at("flat"), true) << "own small blocks";
  EXPECT_EQ(rows(), first);
}

TEST(Simulate, Places_NameTheSourceAndTheObject) {
  const Ended ended = freehold({"simulate", "--workload", "churn", "--size", "64", "--cores", "4", "--places", "40"});
  EXPECT_TRUE(ended.exited_with(0)) << ended.err;
  for (const char* word : {"PLACES", "lock.hpp:", "(a lock)"})
    EXPECT_NE(ended.out.find(word), std::string::npos) << word << '\n' << ended.out;
}

TEST(Simulate, TwoNodes_SayWhatTheOtherOneServes) {
  const Folder folder;
  const auto count = [&](const char* workload, const char* far_cost) {
    const Ended ended = freehold({"simulate", "--workload", workload, "--size", "64", "--cores", "1,4", "--nodes", "2",
                                  "--far-cost", far_cost, "--json", folder / "n.json"});
    EXPECT_TRUE(ended.exited_with(0)) << ended.err;
    EXPECT_NE(ended.out.find("FAR"), std::string::npos) << ended.out;
    return results_in(folder / "n.json").at("rows")[0].at("counts")[1];
  };
  const json own = count("own", "200"), dear = count("churn", "300"), cheap = count("churn", "100");
  EXPECT_GE(own.at("served"), 1.0) << "the block's own line";
  EXPECT_LE(own.at("far"), 0.05);
  EXPECT_GT(dear.at("far"), 0.1);
  EXPECT_DOUBLE_EQ(cheap.at("line_cost").get<double>(), cheap.at("served").get<double>());
  EXPECT_NEAR(dear.at("line_cost").get<double>(), dear.at("served").get<double>() + 2 * dear.at("far").get<double>(), 1e-9);
}

TEST(Simulate, OnATerminalCtrlC_KeepsWhatWasFinished) {
  OnATerminal command({"simulate", "--workload", "many", "--cores", "64,128"});
  ASSERT_TRUE(command.wait_for("simulated cores"));
  command.type(kCtrlC);
  EXPECT_EQ(command.exit_code(), 130);
  EXPECT_NE(command.seen().find("Interrupted"), std::string::npos) << command.seen();
}

}  // namespace
}  // namespace freehold::tests
