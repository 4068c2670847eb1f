// SPDX-License-Identifier: MIT
// `freehold doctor --memory` as a user types it: the commands of docs/memory.md, its files, and what it refuses. Whether it
// is right is memory_faults/run.py's business.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/command.hpp"

namespace freehold::tests {
namespace {
using nlohmann::json;

// The commands that the page shows, without their comments.
std::vector<std::string> commands_of_page() {
  constexpr std::string_view kBegin = "    freehold ";
  std::ifstream in(FREEHOLD_MEMORY_PAGE);
  std::vector<std::string> commands;
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(kBegin)) commands.push_back(line.substr(kBegin.size(), line.find(" #") - kBegin.size()));
  return commands;
}

std::vector<std::string> words_of(const std::string& command) {
  std::istringstream in(command);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

TEST(DoctorMemory, CommandsOfThePage_SayWhatTheProgramHolds) {
  const Folder folder;
  const auto commands = commands_of_page();
  ASSERT_GE(commands.size(), 4u);
  for (const std::string& command : commands) {
    std::vector<std::string> words;
    for (const std::string& word : words_of(command)) {
      // As typed, but two rounds with one treatment: the options are what is tested here.
      if (word == "--quick") continue;
      if (word == "--" && command.find("--repeat") == std::string::npos)
        words.insert(words.end(), {"--repeat", "2", "--allocators", "arenas"});
      words.push_back(word == "./prog"                               ? FREEHOLD_CAPACITY
                      : word == "memory.json" || word == "memory.md" ? folder / word
                                                                     : word);
    }
    const Ended ended = freehold(words);
    EXPECT_TRUE(ended.exited_with(0)) << command << '\n' << ended.err;
    EXPECT_TRUE(ended.out.starts_with("It takes ")) << command << '\n' << ended.out;
    EXPECT_NE(ended.out.find("live data"), std::string::npos) << ended.out;
  }
  EXPECT_NE(content_of(folder / "memory.md").find("| what | mean | at peak |"), std::string::npos);
  const json report = json::parse(content_of(folder / "memory.json"));
  EXPECT_EQ(report.at("schema"), "freehold-doctor-memory/1");
  double sum = 0;
  for (const json& part : report.at("verdict").at("parts")) {
    EXPECT_GE(part.at("mean_bytes").get<double>(), 0) << part;
    sum += part.at("mean_bytes").get<double>();
  }
  EXPECT_NEAR(sum, report.at("verdict").at("mean_bytes").get<double>(), 1);
  EXPECT_EQ(report.at("trials").at(0).at("trials").size(), 2u);
  ASSERT_FALSE(report.at("recording").at("sites").empty());
  EXPECT_NE(report["recording"]["sites"][0].at("site").get<std::string>().find("capacity.cpp"), std::string::npos);
}

TEST(DoctorMemory, OptionsOfTheOtherQuestion_AreRefusedInOneLine) {
  for (const std::vector<std::string>& options : std::vector<std::vector<std::string>>{{"--threads", "1,2"},
                                                                                       {"--env", "N"},
                                                                                       {"--html", "x.html"},
                                                                                       {"--fail-if", "allocator > 10%"},
                                                                                       {"--work", "fixed"}}) {
    std::vector<std::string> words{"doctor", "--memory"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "true"});
    const Ended ended = freehold(words);
    EXPECT_TRUE(ended.exited_with(2)) << options[0];
    EXPECT_EQ(ended.err, "freehold: --memory: " + options[0] + " is for the question of time; leave it out\n");
  }
}

TEST(DoctorMemory, NoProgramOrOneThatFails_IsRefusedInOneLine) {
  const Ended none = freehold({"doctor", "--memory"});
  EXPECT_TRUE(none.exited_with(2));
  EXPECT_EQ(none.err, "freehold: --memory: which program? freehold doctor --memory -- PROGRAM ARGS…\n");
  const Ended fails = freehold({"doctor", "--memory", "--", "false"});
  EXPECT_TRUE(fails.exited_with(2));
  EXPECT_TRUE(fails.err.starts_with("freehold: false fails as it is: exit code 1")) << fails.err;
}

TEST(DoctorMemory, UnknownAllocator_IsRefusedInOneLine) {
  const Ended ended = freehold({"doctor", "--memory", "--allocators", "nonesuch", "--", "true"});
  EXPECT_TRUE(ended.exited_with(2));
  EXPECT_TRUE(ended.err.starts_with("freehold: unknown allocator 'nonesuch'")) << ended.err;
}

}  // namespace
}  // namespace freehold::tests
