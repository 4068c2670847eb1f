// SPDX-License-Identifier: MIT
// freehold heap from outside: what programs with known live sets are said to hold, under threads, fork and unloaded
// libraries; the formats; and bad input.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/cli/command.hpp"

namespace freehold::tests {
namespace {
using nlohmann::json;
namespace fs = std::filesystem;

struct Held {
  double blocks = 0, bytes = 0, peak_bytes = 0, samples = 0;
};
using ByFunction = std::map<std::string, Held>;

// By every function on the way, each counted once for a stack.
ByFunction held_by(const std::string& file) {
  const json profile = json::parse(content_of(file));
  ByFunction held;
  for (const json& stack : profile.at("stacks")) {
    std::map<std::string, bool> seen;
    for (const json& frame : stack.at("frames")) {
      const std::string function = profile.at("frames").at(frame.get<std::size_t>()).at("function");
      if (!seen.emplace(function, true).second) continue;
      Held& one = held[function];
      one.blocks += stack.at("values").at(0).get<double>();
      one.bytes += stack.at("values").at(1).get<double>();
      one.peak_bytes += stack.at("values").at(3).get<double>();
      one.samples += stack.at("samples").at(0).get<double>();
    }
  }
  return held;
}

Ended profile(const std::string& file, std::vector<std::string> options, std::vector<std::string> program,
              const Environment& extra = {}) {
  std::vector<std::string> words = {"heap", "profile", "--format", "json", "--output", file};
  words.insert(words.end(), options.begin(), options.end());
  words.emplace_back("--");
  words.insert(words.end(), program.begin(), program.end());
  return freehold(std::move(words), extra);
}

// ---- figures ------------------------------------------------------------------------------------------------------------

// 8,192 samples a site: a deviation of 1.1%.
TEST(HeapProfile, KnownLiveSets_EachWithinFivePercent) {
  for (const char* cache : {"thread", "cpu"}) {
    const Folder folder;
    const Ended ended =
        profile(folder / "heap.json", {"--distance", "4K"}, {built("heap_sites")}, {{"FREEHOLD_CACHE", cache}});
    ASSERT_TRUE(ended.exited_with(0)) << ended.err;
    ByFunction held = held_by(folder / "heap.json");
    std::istringstream told(ended.out);
    std::string site;
    double blocks = 0, bytes = 0;
    unsigned sites = 0;
    for (; told >> site >> blocks >> bytes; ++sites) {
      EXPECT_NEAR(held[site].blocks / blocks, 1, 0.05) << site << " " << cache;
      EXPECT_NEAR(held[site].bytes / bytes, 1, 0.05) << site << " " << cache;
    }
    EXPECT_EQ(sites, 8u);
    EXPECT_EQ(held["temporary_site"].bytes, 0);
    EXPECT_EQ(held["replaced_site"].bytes, 0);
    EXPECT_NE(ended.err.find("at the end"), std::string::npos) << ended.err;
  }
}

// 2,048 marks a site, of which some end and others stand for them: a deviation of 3, 4 and 9%.
TEST(HeapProfile, LoopsThatKeepOneInHundreds_AreSeenWhole) {
  const Folder folder;
  const Ended ended = profile(folder / "heap.json", {"--distance", "8K"}, {built("heap_rare")});
  ASSERT_TRUE(ended.exited_with(0)) << ended.err;
  ByFunction held = held_by(folder / "heap.json");
  std::istringstream told(ended.out);
  std::string site;
  double blocks = 0, bytes = 0;
  unsigned sites = 0;
  for (; told >> site >> blocks >> bytes; ++sites)
    EXPECT_NEAR(held[site].bytes / bytes, 1, site == "one_in_2000_site" ? 0.4 : 0.2) << site;
  EXPECT_EQ(sites, 3u);
}

TEST(HeapProfile, Leaks_SitesWithTheirStacks) {
  const Folder folder;
  const Ended ended = profile(folder / "heap.json", {"--distance", "64K", "--leaks"}, {built("heap_sites")});
  ASSERT_TRUE(ended.exited_with(0)) << ended.err;
  EXPECT_EQ(ended.err.find("When most was in use"), std::string::npos);
  EXPECT_NE(ended.err.find("small_site"), std::string::npos);
  EXPECT_NE(ended.err.find("main"), std::string::npos) << "no caller of a site";
}

// ---- processes, libraries, moments --------------------------------------------------------------------------------------

TEST(HeapProfile, Fork_EachProcessItsOwn) {
  const Folder folder;
  Ended ended = profile(folder / "heap.json", {"--distance", "4K"}, {built("heap_switch"), "fork"});
  ASSERT_TRUE(ended.exited_with(0)) << ended.err;
  ByFunction held = held_by(folder / "heap.json");
  EXPECT_NEAR(held["during_site"].bytes / 8e6, 1, 0.12);
  EXPECT_EQ(held["child_site"].bytes, 0);
  EXPECT_NE(ended.err.find("1 other processes"), std::string::npos) << ended.err;

  ended = profile(folder / "heap.json", {"--distance", "4K", "--children"}, {built("heap_switch"), "fork"});
  ASSERT_TRUE(ended.exited_with(0)) << ended.err;
  held = held_by(folder / "heap.json");
  EXPECT_NEAR(held["child_site"].bytes / 8e6, 1, 0.12);
  EXPECT_NEAR(held["during_site"].bytes / 16e6, 1, 0.12) << "the child has a copy";
  EXPECT_NE(ended.err.find("and 1 other)"), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("of each its own peak and its own end"), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("When most was in use of each process:"), std::string::npos) << ended.err;
}

TEST(HeapProfile, LibraryUnloaded_ItsBlocksStayKnown) {
  const Folder folder;
  const Ended ended =
      profile(folder / "heap.json", {"--distance", "4K"}, {built("heap_switch"), "unload", built("libheap_plugin.so")});
  ASSERT_TRUE(ended.exited_with(0)) << ended.err;
  const json written = json::parse(content_of(folder / "heap.json"));
  EXPECT_NEAR(written.at("in_use").at("bytes").get<double>() / 16e6, 1, 0.12);
  ByFunction held = held_by(folder / "heap.json");
  EXPECT_NEAR(held["during_site"].bytes / 8e6, 1, 0.12);
  EXPECT_EQ(held["plugin_site"].bytes, 0) << "its names are gone";
}

TEST(HeapProfile, SwitchedByTheProgram_OnlyWhatCameBetween) {
  const Folder folder;
  const Ended ended = freehold({"run", "--", built("heap_switch"), "switch", folder / "p-%p.heap"});
  ASSERT_TRUE(ended.exited_with(0)) << ended.status << ended.err;
  const auto files = folder.names();
  ASSERT_EQ(files.size(), 1u);
  const Ended shown = freehold({"heap", "show", "--format", "json", "--output", folder / "shown.json", folder / files[0]});
  ASSERT_TRUE(shown.exited_with(0)) << shown.err;
  ByFunction held = held_by(folder / "shown.json");
  EXPECT_NEAR(held["during_site"].bytes / 8e6, 1, 0.12);
  EXPECT_EQ(held["before_site"].bytes, 0);
  EXPECT_LT(held["after_site"].bytes, 0.1e6) << "marks that were left in the bin";
}

TEST(HeapProfile, CheckedMode_OneLineAndNoProfile) {
  const Folder folder;
  const Ended ended =
      freehold({"run", "--check", "--", "true"}, {{"FREEHOLD_PROFILE", "1"}, {"FREEHOLD_PROFILE_FILE", folder / "x"}});
  EXPECT_TRUE(ended.exited_with(0));
  EXPECT_EQ(ended.err, "freehold: ignoring FREEHOLD_PROFILE: expected no FREEHOLD_CHECK beside it\n");
  EXPECT_TRUE(folder.names().empty());
}

// A child that is still at its profile, or died during it, or something else in the folder, does not cost the others theirs.
TEST(HeapProfile, FilesOfOthersThatAreUnfinishedOrDamaged_TheRestIsShown) {
  const Folder folder;
  const std::string spoils =
      "$ENV{FREEHOLD_PROFILE_FILE} =~ m{(.*)/}; open F, \">$1/7.heap.8~\"; print F \"freehold heap profile 1\\n\"; "
      "open F, \">$1/9.heap\"; print F \"damaged\\n\"; exit 3";
  const Ended ended = profile(folder / "heap.json", {"--distance", "64"}, {"perl", "-e", spoils});
  EXPECT_TRUE(ended.exited_with(3)) << ended.status << ended.err;
  EXPECT_NE(ended.err.find("freehold: left out: "), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("9.heap: not a heap profile"), std::string::npos) << ended.err;
  EXPECT_EQ(ended.err.find("8~"), std::string::npos) << ended.err;
  EXPECT_TRUE(json::accept(content_of(folder / "heap.json")));
}

TEST(HeapProfile, NoMemoryMap_IsSaid) {
  const Folder folder;
  std::ofstream(folder / "p.heap")
      << "freehold heap profile 1\npid 1\ntime_ns 0\nmean 1\nsampled 0\nlost 0\nprogram x\nmaps\nend\n";
  const Ended ended = freehold({"heap", "show", folder / "p.heap"});
  EXPECT_TRUE(ended.exited_with(0)) << ended.err;
  EXPECT_NE(ended.err.find("could not read its memory map"), std::string::npos) << ended.err;
}

// The program lies at another place in memory in each run.
TEST(HeapDiff, ProgramWithoutSymbols_SitesAreTheSameInEachRun) {
  const Folder folder;
  const std::string stripped = folder / "stripped";
  ASSERT_EQ(std::system(("strip -o '" + stripped + "' '" + built("heap_sites") + "'").c_str()), 0);
  std::array<std::set<std::string>, 2> sites;
  for (std::set<std::string>& of_run : sites) {
    ASSERT_TRUE(profile(folder / "heap.json", {"--distance", "64K"}, {stripped}).exited_with(0));
    const json read = json::parse(content_of(folder / "heap.json"));
    for (const json& frame : read.at("frames"))
      if (frame.at("module").get<std::string>().ends_with("stripped")) of_run.insert(frame.at("function"));
  }
  // A site that allocates little may have no sample in one of the runs.
  std::vector<std::string> common;
  std::ranges::set_intersection(sites[0], sites[1], std::back_inserter(common));
  EXPECT_GE(common.size(), 8U);
  EXPECT_GE(4 * common.size(), 3 * std::max(sites[0].size(), sites[1].size())) << json(sites).dump();
}

TEST(HeapProfile, ExitStatusAndOutput_TheProgramsOwn) {
  const Folder folder;
  const Ended ended = profile(folder / "heap.json", {}, {"sh", "-c", "echo out; exit 7"});
  EXPECT_TRUE(ended.exited_with(7)) << ended.status;
  EXPECT_EQ(ended.out, "out\n");
  EXPECT_TRUE(profile(folder / "heap.json", {}, {"sh", "-c", "kill -TERM $$"}).killed_by(15));
}

// ---- code made at run time ----------------------------------------------------------------------------------------------

// The functions of the heaviest stack, the innermost first.
std::vector<std::string> heaviest_stack(const std::string& file) {
  const json profile = json::parse(content_of(file));
  const json* heaviest = nullptr;
  for (const json& stack : profile.at("stacks"))
    if (heaviest == nullptr || stack.at("values").at(1) > heaviest->at("values").at(1)) heaviest = &stack;
  std::vector<std::string> functions;
  if (heaviest != nullptr)
    for (const json& frame : heaviest->at("frames"))
      functions.push_back(profile.at("frames").at(frame.get<std::size_t>()).at("function"));
  return functions;
}

// Profiles heap_jit, and removes the names that it left.
Ended profile_of_code(const Folder& folder, const std::vector<std::string>& words) {
  std::vector<std::string> program = {built("heap_jit")};
  program.insert(program.end(), words.begin(), words.end());
  Ended ended = profile(folder / "heap.json", {"--distance", "16K", "--leaks"}, program);
  std::filesystem::remove("/tmp/perf-" + std::to_string(std::atoi(ended.out.c_str())) + ".map");
  return ended;
}

using Functions = std::vector<std::string>;

TEST(HeapOfRuntimeCode, NamedByItsPerfMap_FramesAndSites) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "stacks end at such code on this machine";
#endif
  for (const char* kind : {"framed", "plain"}) {
    const Folder folder;
    const Ended ended = profile_of_code(folder, {kind});
    ASSERT_TRUE(ended.exited_with(0)) << ended.err;
    Functions stack = heaviest_stack(folder / "heap.json");
    ASSERT_GE(stack.size(), 6U) << kind;
    stack.resize(6);
    EXPECT_EQ(stack, (Functions{"keep_site", "made_at_run_time", "keep_site", "made_at_run_time", "keep_site", "main"}))
        << kind;
    EXPECT_NEAR(held_by(folder / "heap.json")["made_at_run_time"].bytes / 8e6, 1, 0.2);
    EXPECT_EQ(held_by(folder / "heap.json")["other_name"].bytes, 0) << "a library's code has its own names";
    EXPECT_NE(ended.err.find("%  made_at_run_time\n"), std::string::npos) << ended.err;
  }
}

// ---- show and diff ------------------------------------------------------------------------------------------------------

struct Written {
  Written() {
    const Environment environment = {{"FREEHOLD_PROFILE", "16384"}, {"FREEHOLD_PROFILE_FILE", folder / "big.heap"}};
    EXPECT_TRUE(freehold({"run", "--", built("heap_sites")}, environment).exited_with(0));
    const Environment other = {{"FREEHOLD_PROFILE", "16384"}, {"FREEHOLD_PROFILE_FILE", folder / "small.heap"}};
    EXPECT_TRUE(freehold({"run", "--", built("heap_sites"), "peak"}, other).exited_with(0));
  }
  Folder folder;
};

TEST(HeapShow, Recording_TableAndJsonThatIsReadAgain) {
  const Written written;
  const Ended table = freehold({"heap", "show", "--top", "3", written.folder / "big.heap"});
  ASSERT_TRUE(table.exited_with(0)) << table.err;
  EXPECT_NE(table.out.find("heap_sites (process "), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("more sites: --top 0 shows them"), std::string::npos) << table.out;
  const Ended made = freehold({"heap", "show", "--format", "json", written.folder / "big.heap"});
  ASSERT_TRUE(made.exited_with(0));
  std::ofstream(written.folder / "big.json") << made.out;
  EXPECT_EQ(freehold({"heap", "show", "--top", "0", written.folder / "big.json"}).out,
            freehold({"heap", "show", "--top", "0", written.folder / "big.heap"}).out);
  const Ended peak = freehold({"heap", "show", "--peak", written.folder / "small.heap"});
  EXPECT_NE(peak.out.find("peak_site"), std::string::npos) << peak.out;
}

TEST(HeapDiff, TwoRecordings_WhatGrewAndWhatShrank) {
  const Written written;
  const Ended grew = freehold({"heap", "diff", written.folder / "small.heap", written.folder / "big.heap"});
  ASSERT_TRUE(grew.exited_with(0)) << grew.err;
  EXPECT_NE(grew.out.find("small_site"), std::string::npos) << grew.out;
  EXPECT_NE(grew.out.find(" +3"), std::string::npos) << grew.out;
  const Ended shrank = freehold({"heap", "diff", written.folder / "big.heap", written.folder / "small.heap"});
  EXPECT_NE(shrank.out.find(" -3"), std::string::npos) << shrank.out;
  EXPECT_NE(freehold({"heap", "diff", written.folder / "big.heap", written.folder / "big.heap"}).out.find("nothing changed"),
            std::string::npos);
}

// ---- the page -----------------------------------------------------------------------------------------------------------

// All commands of docs/heap-profile.md, one after the other. 4711 is a process that runs.
TEST(HeapPage, Commands_AllWork) {
  const Folder folder;
  Process running({command_path(), "run", "--live", "--", built("heap_sites"), "wait"}, {{"FREEHOLD_PROFILE", "1"}});
  ASSERT_TRUE(running.wait_for_output("ready"));
  std::ifstream page(FREEHOLD_HEAP_PAGE);
  std::string script = "set -e\ncd '" + (folder / "") + "'\n";
  script += "freehold() { '" + command_path() + "' \"$@\"; }\nln -s '" + built("heap_sites") + "' prog\n";
  bool is_inside = false;
  unsigned commands = 0;
  for (std::string line; std::getline(page, line);) {
    if (line.rfind("```", 0) == 0) {
      is_inside = line == "```sh";
    } else if (is_inside) {
      if (const std::size_t number = line.find("4711"); number != std::string::npos)
        line.replace(number, 4, std::to_string(running.pid()));
      script += line + '\n';
      ++commands;
    }
  }
  EXPECT_GE(commands, 14u);
  Process shell({"sh", "-c", script + "wait\n"});
  const Ended ended = shell.wait();
  EXPECT_TRUE(ended.exited_with(0)) << ended.err;
  for (const char* made :
       {"heap.pb.gz", "before.json", "before.pb.gz", "running.pb.gz", "running.json", "before.html", "growth.html"})
    EXPECT_FALSE(content_of(folder / made).empty()) << made;
  EXPECT_NE(ended.out.find("growth"), std::string::npos) << ended.out;
  EXPECT_NE(content_of(folder / "running.json").find("small_site"), std::string::npos);
}

// ---- bad input ----------------------------------------------------------------------------------------------------------

TEST(HeapCommand, BadInput_OneLine) {
  const Folder folder;
  expect_refused(freehold({"heap"}), "heap profile -- PROGRAM");
  expect_refused(freehold({"heap", "profile"}), "no program given");
  expect_refused(freehold({"heap", "profile", "--distance", "0", "--", "true"}), "--distance");
  expect_refused(freehold({"heap", "profile", "--distance", "1", "--", "true"}), "at least 2");
  expect_refused(freehold({"heap", "profile", "--distance", "many", "--", "true"}), "--distance");
  for (const char* distance : {"0", "1", "0K", "1025M", "18446744073709551615M", "K", "", "12KK", "-5", "1.5M"})
    expect_refused(freehold({"heap", "profile", "--distance", distance, "--", "true"}),
                   std::string("'") + distance + "' is no mean distance of samples: at least 2 bytes, at most 1024M");
  expect_refused(freehold({"heap", "profile", "--", "true"}, {{"FREEHOLD_CHECK", "1"}}), "unset FREEHOLD_CHECK");
  expect_refused(freehold({"heap", "profile", "--format", "svg", "--", "true"}), "--format");
  expect_refused(freehold({"heap", "profile", "--output", "-", "--", "true"}), "standard output belongs to the program");
  expect_refused(freehold({"heap", "profile", "--output", "/no/such/folder/x", "--", "true"}), "/no/such/folder/x");
  expect_refused(freehold({"heap", "show"}), "which file");
  expect_refused(freehold({"heap", "show", "--html", "-", folder / "none"}), "needs a file");
  expect_refused(freehold({"heap", "show", "--html", "/no/such/folder/x", folder / "none"}), "/no/such/folder/x");
  expect_refused(freehold({"heap", "show", folder / "none"}), "No such file");
  expect_refused(freehold({"heap", "show", "--top", "x", folder / "none"}), "--top");
  expect_refused(freehold({"heap", "diff", folder / "none"}), "two files");
  const std::string raw = "freehold heap profile 1\npid 12\n";
  for (const auto& [text, why] :
       {std::pair(std::string(), "not a heap profile"),
        {"hello\n", "not a heap profile"},
        {"{}", "not a heap profile"},
        {raw + "now 1 16 40", "cut off"},
        {raw, "no memory map"},
        {raw + "now 1 x 40 5\nmaps\n", "damaged"},
        {raw + "maps\n", "cut off"},
        {R"({"format": "freehold-heap-profile", "version": 1})", "damaged"},
        {R"({"format": "freehold-heap-profile", "version": 1, "program": "p", "pid": 1, "distance_bytes": -5})",
         "distance_bytes is no count"}})
    expect_refused(freehold({"heap", "show", folder.file("bad", text)}), why);
  ASSERT_TRUE(freehold({"heap", "profile", "--output", folder / "x.pb.gz", "--", "true"}).exited_with(0));
  expect_refused(freehold({"heap", "show", folder / "x.pb.gz"}), "'heap show' reads what --format json writes");
  const std::string head = R"({"format": "freehold-heap-profile", "version": 1, "pid": 1, "distance_bytes": 5, )";
  const std::string counts = R"("sampled_blocks": 1, "lost_blocks": 1, "time_ns": 1, )";
  for (const auto& [text, why] :
       {std::pair(head + "}", "key 'sampled_blocks' not found"), std::pair(head + counts + R"("frames": 7})", "wrong kind"),
        std::pair(head + counts + R"("frames": [], "stacks": [{"frames": [], "values": []}]})", "too short"),
        std::pair(std::string(R"({"format": "freehold-heap-profile", "version": "x"})"), "of this version")}) {
    std::ofstream(folder / "one.json") << (text.ends_with(", }") ? text.substr(0, text.size() - 3) + "}" : text);
    const Ended ended = freehold({"heap", "show", folder / "one.json"});
    expect_refused(ended, why);
    EXPECT_EQ(ended.err.find("json.exception"), std::string::npos) << ended.err;
  }
}

}  // namespace
}  // namespace freehold::tests
