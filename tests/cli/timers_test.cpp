// SPDX-License-Identifier: MIT
// freehold timers from outside, on tiny amounts of work: that every structure is right. Bad arguments and Ctrl-C:
// lab_test.cpp.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tests/cli/command.hpp"

namespace freehold::tests {
namespace {
using nlohmann::json;

Ended timers(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "timers");
  return freehold(std::move(arguments));
}

// The names of --list.
std::vector<std::string> all_structures() {
  std::vector<std::string> names;
  const std::string list = timers({"--list"}).out;
  for (std::size_t at = 0; at < list.size(); at = list.find('\n', at) + 1)
    names.push_back(list.substr(at, list.find(' ', at) - at));
  return names;
}

// Under a sanitizer there is no library to preload.
std::string measurable() {
  std::string list;
  for (const std::string& name : all_structures()) {
    if (!std::getenv("FREEHOLD_TEST_NO_PRELOAD") || !name.ends_with("-freehold")) list += (list.empty() ? "" : ",") + name;
  }
  return list;
}

TEST(Timers, EveryStructure_IsMeasuredAndWritten) {
  const Folder folder;
  const std::string chosen = measurable();
  const std::vector<std::string> work{
      "--tests", "fresh-random,random,cancel,rearm,shared", "--count", "3000", "--live", "300", "--users", "2"};
  const std::vector<std::string> load{"--loads", "alone,heap", "--background", "2", "--repeat", "1", "--time", "1"};
  std::vector<std::string> arguments{"--timers", chosen, "--json", folder / "r.json", "--html", folder / "r.html"};
  arguments.insert(arguments.end(), work.begin(), work.end());
  arguments.insert(arguments.end(), load.begin(), load.end());
  const Ended ended = timers(arguments);
  EXPECT_TRUE(ended.exited_with(0)) << ended.err << ended.out;
  EXPECT_EQ(ended.err, "");  // progress is for terminals
  for (const char* word : {"NANOSECONDS", "SLEEPS", "container-private", "libuv"})
    EXPECT_NE(ended.out.find(word), std::string::npos) << word << '\n' << ended.out;
  const json results = json::parse(content_of(folder / "r.json"));
  EXPECT_EQ(results.at("complete"), true);
  std::map<std::string, int> rows;
  std::map<std::string, std::uint64_t> load_operations;
  for (const json& series : results.at("series")) {
    EXPECT_TRUE(series.at("failure").is_null()) << series;
    EXPECT_EQ(series.at("samples").size(), 1u);
    for (const json& phase : series.at("phases")) EXPECT_GT(phase.at("cpu_ns"), 0) << series;
    if (series.at("samples").empty()) continue;
    load_operations[series.at("load")] += series.at("samples")[0].at("background_operations").get<std::uint64_t>();
    ++rows[series.at("structure")];
  }
  EXPECT_EQ(rows["container"], 2 * 5);
  for (const char* name : {"article", "article-containers", "article-private", "article-wheel", "article-wheel-containers",
                           "article-wheel-private"})
    EXPECT_EQ(rows[name], 2 * 5);
  EXPECT_EQ(rows["libuv"], 2 * 4);  // nobody may share it
  EXPECT_EQ(rows["baseline"], 2);
  EXPECT_EQ(load_operations["alone"], 0u);
  EXPECT_GT(load_operations["heap"], 0u);
  EXPECT_EQ(rows.size(), static_cast<std::size_t>(std::count(chosen.begin(), chosen.end(), ',') + 1));
  EXPECT_TRUE(content_of(folder / "r.html").starts_with("<!DOCTYPE html>"));
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"r.html", "r.json"}));
}

}  // namespace
}  // namespace freehold::tests
