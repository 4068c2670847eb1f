// SPDX-License-Identifier: MIT
// freehold articles from outside, on tiny amounts of work: every claim has a verdict, and what Ctrl-C leaves.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/cli/command.hpp"
#include "tests/cli/terminal.hpp"

namespace freehold::tests {
namespace {
using nlohmann::json;

Ended articles(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "articles");
  return freehold(std::move(arguments));
}

TEST(Articles, Quick_EveryClaimIsMeasuredAndWritten) {
  const Folder folder;
  const Ended ended = articles({"--quick", "--json", folder / "r.json", "--html", folder / "r.html"});
  EXPECT_TRUE(ended.exited_with(0)) << ended.err << ended.out;
  EXPECT_EQ(ended.err, "");
  const json results = json::parse(content_of(folder / "r.json"));
  EXPECT_EQ(results.at("complete"), true);
  std::map<int, int> claims;
  const std::set<std::string> known{"reproduced", "refuted", "undecided", "not testable"};
  for (const json& claim : results.at("claims")) {
    EXPECT_TRUE(known.contains(claim.at("verdict"))) << claim;
    EXPECT_EQ(claim.at("verdict") == "not testable", claim.at("figure").is_null()) << claim;
    EXPECT_FALSE(claim.at("limits").is_null()) << claim;
    ++claims[claim.at("article")];
  }
  for (int article = 1; article <= 5; ++article) EXPECT_GE(claims[article], 7) << article;
  for (const char* heading : {"ARTICLE 1", "ARTICLE 5", "not testable"})
    EXPECT_NE(ended.out.find(heading), std::string::npos) << heading;
  EXPECT_TRUE(content_of(folder / "r.html").starts_with("<!DOCTYPE html>"));
}

TEST(Articles, CtrlC_KeepsWhatIsFinished) {
  const Folder folder;
  OnATerminal command({"articles", "--articles", "3,5", "--quick", "--repeat", "1000", "--json", folder / "r.json"});
  ASSERT_TRUE(command.wait_for("  20/")) << command.seen();
  command.type(kCtrlC);
  const int status = command.end();
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 130);
  const json results = json::parse(content_of(folder / "r.json"));
  EXPECT_EQ(results.at("complete"), false);
  for (const json& claim : results.at("claims")) EXPECT_EQ(claim.at("article"), 3);
}

}  // namespace
}  // namespace freehold::tests
