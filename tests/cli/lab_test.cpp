// SPDX-License-Identifier: MIT
// Bad arguments of all experiments, and Ctrl-C in the middle of one, from outside. A file of each experiment's name tests
// what it measures.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/cli/command.hpp"
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

TEST(Lab, CtrlC_KeepsWhatIsFinished) {
  const struct {
    Words words;
    std::string progress;
    std::size_t samples;  // of the whole run
  } runs[] = {
      {{"scale", "--time", "2", "--tests", "allocate", "--workers", "2"}, "  20/8000  allocate, ", 8000},
      {{"pools", "--operations", "500", "--tests", "pair", "--pools", "tagged-stack,boost-pool"}, "  20/2000  pair, ", 2000},
      {{"timers", "--timers", "container,queue", "--tests", "rearm", "--live", "100", "--background", "0", "--time", "1"},
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
    const int status = command.end();
    ASSERT_TRUE(WIFEXITED(status)) << status;
    EXPECT_EQ(WEXITSTATUS(status), 130);
    EXPECT_NE(command.seen().find("Interrupted"), std::string::npos) << command.seen();
    const json results = json::parse(content_of(folder / "r.json"));
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

}  // namespace
}  // namespace freehold::tests
