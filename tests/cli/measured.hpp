// SPDX-License-Identifier: MIT
// A whole run of an experiment, with both of its files.
#pragma once
#include <gtest/gtest.h>

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/cli/command.hpp"

namespace freehold::tests {

inline nlohmann::json results_in(const std::string& path) { return nlohmann::json::parse(content_of(path)); }

// The results of `arguments`, which end well, say nothing on standard error, and show `words` in the table.
inline nlohmann::json measured(std::vector<std::string> arguments, std::initializer_list<const char*> words) {
  const Folder folder;
  arguments.insert(arguments.end(), {"--json", folder / "r.json", "--html", folder / "r.html"});
  const Ended ended = freehold(std::move(arguments));
  EXPECT_TRUE(ended.exited_with(0)) << ended.err << ended.out;
  EXPECT_EQ(ended.err, "");  // progress is for terminals
  for (const char* word : words) EXPECT_NE(ended.out.find(word), std::string::npos) << word << '\n' << ended.out;
  nlohmann::json results = results_in(folder / "r.json");
  EXPECT_EQ(results.at("complete"), true);
  EXPECT_TRUE(content_of(folder / "r.html").starts_with("<!DOCTYPE html>"));
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"r.html", "r.json"}));
  return results;
}

}  // namespace freehold::tests
