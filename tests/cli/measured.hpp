// SPDX-License-Identifier: MIT
// Whole runs of an experiment, and of the doctor, with their files.
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

// The report of `freehold doctor` with these options; it ends well.
inline nlohmann::json doctor_report(std::vector<std::string> options, const std::vector<std::string>& program) {
  const Folder folder;
  options.insert(options.begin(), "doctor");
  options.insert(options.end(), {"--json", folder / "r.json", "--"});
  options.insert(options.end(), program.begin(), program.end());
  const Ended ended = freehold(std::move(options));
  EXPECT_TRUE(ended.exited_with(0)) << ended.err << ended.out;
  return results_in(folder / "r.json");
}

}  // namespace freehold::tests
