// SPDX-License-Identifier: MIT
#include "cli/command.hpp"

#include <gtest/gtest.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

namespace freehold::cli {
namespace {

using Words = std::vector<std::string>;

struct Cut {
  Words own;
  Words program;
  bool operator==(const Cut&) const = default;
};

Cut cut(Words words) {
  CLI::App app;
  bool flag = false;
  std::string value;
  app.add_flag("--stats", flag);
  app.add_option("-j,--json", value);
  Cut result;
  result.program = cut_program(app, words);
  result.own = words;
  return result;
}

TEST(CutProgram, DoubleDash_EndsTheOwnOptions) {
  EXPECT_EQ(cut({"--stats", "--", "prog", "--", "-x"}), (Cut{{"--stats"}, {"prog", "--", "-x"}}));
  EXPECT_EQ(cut({"--", "--stats"}), (Cut{{}, {"--stats"}}));
}

TEST(CutProgram, FirstForeignWord_EndsTheOwnOptions) {
  EXPECT_EQ(cut({"prog", "--stats"}), (Cut{{}, {"prog", "--stats"}}));
  EXPECT_EQ(cut({"--json", "file", "prog"}), (Cut{{"--json", "file"}, {"prog"}}));
  EXPECT_EQ(cut({"-j", "file", "--stats", "prog", "-j"}), (Cut{{"-j", "file", "--stats"}, {"prog", "-j"}}));
  EXPECT_EQ(cut({"--json=file", "prog"}), (Cut{{"--json=file"}, {"prog"}}));
}

}  // namespace
}  // namespace freehold::cli
