// SPDX-License-Identifier: MIT
// freehold run with the real library: the stats arrive, and arrive nowhere else.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/cli/command.hpp"

namespace freehold::tests {
namespace {

TEST(RunStats, ProgramThatAllocates_TableOnStandardError) {
  const Ended ended = freehold({"run", "--stats", "ls", "/"});
  EXPECT_TRUE(ended.exited_with(0));
  EXPECT_NE(ended.out.find("tmp"), std::string::npos);
  EXPECT_EQ(ended.out.find("committed"), std::string::npos);
  for (const char* word : {"freehold: ls: ", "peak memory", "committed", "spans claimed", "in force: ", "refills"}) {
    EXPECT_NE(ended.err.find(word), std::string::npos) << word << '\n' << ended.err;
  }
}

TEST(RunStats, ProgramThatAllocates_JsonHoldsTheEnginesFigures) {
  const Folder folder;
  EXPECT_TRUE(freehold({"run", "--json", folder / "run.json", "ls", "/"}).exited_with(0));
  const auto json = nlohmann::json::parse(content_of(folder / "run.json"));
  EXPECT_EQ(json.at("format"), "freehold-run");
  const auto& stats = json.at("stats");
  EXPECT_GT(stats.at("reserved_bytes"), 0);
  EXPECT_GE(stats.at("reserved_bytes"), stats.at("committed_bytes"));
  EXPECT_EQ(stats.at("peak_threads"), 1);
  ASSERT_FALSE(stats.at("classes").empty());
  std::uint64_t spans = 0;
  for (const auto& c : stats.at("classes")) {
    spans += c.at("spans").get<std::uint64_t>();
    EXPECT_GE(c.at("slots"), c.at("free_slots"));
  }
  EXPECT_GT(spans, 0u);
  EXPECT_GT(json.at("peak_rss_bytes"), 0);
}

TEST(RunStats, ChildThatExitsBeforeItsParentIsKilled_StatsAreNotTheChilds) {
  const Folder folder;
  const Ended ended = freehold({"run", "--json", folder / "run.json", built("child_exits_first")});
  EXPECT_TRUE(ended.killed_by(SIGKILL)) << ended.status;
  EXPECT_NE(ended.err.find("killed by signal 9"), std::string::npos) << ended.err;
  EXPECT_TRUE(nlohmann::json::parse(content_of(folder / "run.json")).at("stats").is_null());
}

TEST(RunStats, LeaksOfACleanProgram_NothingIsSaid) {
  for (const char* program : {"ends_clean", "ends_clean_static", "ends_clean_cxx"}) {
    const Ended clean = freehold({"run", "--leaks", "--", built(program)});
    EXPECT_EQ(clean.out, "clean\n");
    EXPECT_EQ(clean.err, "") << program;
  }
  const Ended leaks = freehold({"run", "--leaks", "--", built("ends_clean"), "12 letters."});
  EXPECT_EQ(leaks.err.rfind("freehold: leaked: 12 bytes in 1 blocks\n", 0), 0u) << leaks.err;
  const Ended stream = freehold({"run", "--leaks", "--", built("ends_clean"), "12 letters.", "/dev/null"});
  EXPECT_NE(stream.err.find(" bytes in 2 blocks\n"), std::string::npos) << stream.err;
  const Ended demangled = freehold({"run", "--leaks", "--", built("ends_clean_cxx"), "lose"});
  EXPECT_NE(demangled.err.find(" bytes in 1 blocks\n"), std::string::npos) << demangled.err;
}

// The number of the first line that has the text.
int line_with(const std::string& file, const std::string& text) {
  const std::string content = content_of(file);
  const std::string before = content.substr(0, content.find(text));
  return static_cast<int>(lines_of(before)) + 1;
}

TEST(RunStats, StackOfALeak_FunctionsAndLines) {
  const Ended leaks = freehold({"run", "--leaks", "--", built("ends_clean"), "12 letters."});
  const int line = line_with(FREEHOLD_PROGRAMS_SOURCE "/ends_clean.c", "strdup(");
  EXPECT_NE(leaks.err.find("freehold:     #1 main at ends_clean.c:" + std::to_string(line) + '\n'), std::string::npos)
      << leaks.err;
  EXPECT_EQ(leaks.err.find("+0x"), std::string::npos) << leaks.err;
}

TEST(RunStats, StackOfAMisuse_LinesAmongTheProgramsOwnAndItsSignal) {
  const Ended ended = freehold({"run", "--stacks", "8", "--", built("misuses"), "twice"});
  EXPECT_TRUE(ended.killed_by(SIGABRT)) << ended.status;
  const std::size_t before = ended.err.find("before\n"), stack = ended.err.find("free_twice at misuses.c:");
  EXPECT_NE(stack, std::string::npos) << ended.err;
  EXPECT_LT(before, stack) << ended.err;
  const Ended goes_on = freehold({"run", "--stacks", "8", "--", built("misuses"), "twice"}, {{"FREEHOLD_CHECK_ABORT", "0"}});
  EXPECT_TRUE(goes_on.exited_with(3)) << goes_on.status;
  EXPECT_LT(goes_on.err.rfind("free_twice at misuses.c:"), goes_on.err.find("after\n")) << goes_on.err;
}

TEST(RunStats, NobodyToAskForLines_AddressesAndOneHint) {
  const std::string library = freehold({"run", "--", "sh", "-c", "printf %s \"$LD_PRELOAD\""}).out;
  const Environment alone = {{"LD_PRELOAD", library}, {"FREEHOLD_CHECK", "1"}, {"FREEHOLD_CHECK_STACKS", "8"}};
  const Ended cases[] = {Process({built("misuses"), "twice"}, alone).wait(),
                         freehold({"run", "--stacks", "8", "--", built("misuses"), "closes"}),
                         freehold({"run", "--stacks", "8", "--", built("misuses"), "reuses"})};
  for (const Ended& ended : cases) {
    EXPECT_TRUE(ended.killed_by(SIGABRT)) << ended.status;
    EXPECT_NE(ended.err.find("misuses+0x"), std::string::npos) << ended.err;
  }
  const std::string hint = "freehold run --leaks -- PROGRAM";
  EXPECT_NE(cases[0].err.find(hint), std::string::npos) << cases[0].err;
  EXPECT_EQ(cases[0].err.find(hint), cases[0].err.rfind(hint)) << cases[0].err;
  EXPECT_EQ(cases[2].out, "");  // what the program has under the socket's number gets nothing
}

TEST(RunStats, CommandDiesBeforeTheReport_ItIsWrittenAllTheSame) {
  const Ended ended = freehold({"run", "--stacks", "8", "--", built("misuses"), "orphan"});
  EXPECT_TRUE(ended.killed_by(SIGKILL)) << ended.status;
  EXPECT_NE(ended.err.find("misuses+0x"), std::string::npos) << ended.err;
}

TEST(RunStats, ChildrensReports_LinesToo) {
  const Ended ended = freehold({"run", "--stacks", "8", "--", built("misuses"), "children"});
  EXPECT_TRUE(ended.exited_with(3)) << ended.status;
  int stacks = 0;
  for (std::size_t at = 0; (at = ended.err.find("free_twice at misuses.c:", at)) != std::string::npos; ++at) ++stacks;
  EXPECT_EQ(stacks, 8) << ended.err;  // four children: where the block was made, and where it was freed
  EXPECT_EQ(ended.err.find("+0x"), std::string::npos) << ended.err;
}

// "cause program" of each process, by its file's name.
std::map<std::string, std::string> causes_of(const Ended& ended) {
  std::map<std::string, std::string> causes;
  const auto json = nlohmann::json::parse(ended.out);
  for (const auto& one : json.at("processes"))
    causes[std::filesystem::path(one.at("program").get<std::string>()).filename()] = one.at("cause");
  return causes;
}

TEST(CheckPreload, Command_EachProcessAndItsCause) {
  const Folder folder;
  const auto copy = [&](const char* of, const std::string& name) {
    std::filesystem::copy_file(std::filesystem::canonical(of), folder / name);
    return folder / name;
  };
  const std::string program = copy("/bin/ls", "served"), cleared = copy("/bin/ls", "cleared"),
                    lost = copy("/bin/ls", "lost"), behind = copy("/bin/ls", "behind"), quick = copy("/bin/true", "quick");
  std::string script = program + " /; env -i " + cleared + " /; LD_PRELOAD=/nowhere/libfreehold.so " + lost +
                       " /; LD_PRELOAD=" + built("libown_malloc_library.so") + ":$LD_PRELOAD " + behind + " /; " +
                       built("static_program") + "; " + built("own_malloc") + "; (" + quick + " & " + quick + "); ";
  std::map<std::string, std::string> expected = {
      {"served", "served"},         {"cleared", "environment"},     {"lost", "path"},   {"behind", "other-malloc"},
      {"static_program", "static"}, {"own_malloc", "other-malloc"}, {"quick", "served"}};
  if (::geteuid() == 0) {  // another user's file, with that user's rights
    const std::string setuid = copy("/bin/ls", "setuid");
    ASSERT_EQ(::chown(setuid.c_str(), 65534, 65534), 0);
    ASSERT_EQ(::chmod(setuid.c_str(), 04755), 0);
    script += setuid + " /; ";
    expected["setuid"] = "privileges";
  }
  folder.file("musl.c", "int main(void) { return 0; }");
  if (std::system(("musl-gcc -o " + folder / "musl " + folder / "musl.c 2>/dev/null").c_str()) == 0) {
    script += (folder / "musl") + "; ";
    expected["musl"] = "musl";
  }
  const Ended ended = freehold({"check-preload", "--json", "-", "--", "sh", "-c", script + "exit 7"});
  EXPECT_TRUE(ended.exited_with(1)) << ended.status << ended.err;
  auto causes = causes_of(ended);
  for (const auto& [name, cause] : expected) EXPECT_EQ(causes[name], cause) << name << '\n' << ended.out;
  EXPECT_NE(ended.err.find("tmp"), std::string::npos);  // what the programs print
}

TEST(CheckPreload, ForkedLast_IsTheProgramThatItBecomes) {
  const Ended ended = freehold({"check-preload", "sh", "-c", "sleep 1 >/dev/null 2>&1 & exit 3"});
  EXPECT_NE(ended.out.find("/sleep: served"), std::string::npos) << ended.out << ended.err;
}

TEST(CheckPreload, AllServed_ExitCode0AndOneLineForEach) {
  const Ended ended = freehold({"check-preload", "sh", "-c", "ls / & ls /; wait"});
  EXPECT_TRUE(ended.exited_with(0)) << ended.out << ended.err;
  EXPECT_NE(ended.out.find("3 of 3 processes are served"), std::string::npos) << ended.out;
  EXPECT_EQ(lines_of(ended.out), 3) << ended.out;
}

TEST(CheckPreload, NowhereToPrint_OneLineAndExitCode2) {
  for (const char* nowhere : {" >&-", " >/dev/full"}) {
    const Ended ended = Process({"sh", "-c", command_path() + " check-preload -- true" + nowhere}).wait();
    EXPECT_TRUE(ended.exited_with(2)) << nowhere;
    EXPECT_EQ(lines_of(ended.err), 1) << ended.err;
  }
}

TEST(CheckPreload, Process_ItAndItsChildren) {
  const std::string wait =
      "sleep 60 & env -i sleep 60 & while [ $(pgrep -c -P $$ sleep) -lt 2 ]; do :; done; echo ready; wait";
  Process process({command_path(), "run", "--", "sh", "-c", wait});
  ASSERT_TRUE(process.wait_for_output("ready"));
  const Ended ended = freehold({"check-preload", std::to_string(process.pid())});
  EXPECT_TRUE(ended.exited_with(1)) << ended.status << ended.err;
  EXPECT_NE(ended.out.find("LD_PRELOAD is not in its environment"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("2 of 3 processes are served"), std::string::npos) << ended.out;
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{"check-preload"},
                                                {"check-preload", "4194303"},
                                                {"check-preload", "--", "/nowhere/at-all"}}) {
    const Ended refused = freehold(wrong);
    EXPECT_TRUE(refused.exited_with(wrong.size() == 3 ? 127 : 2)) << refused.status;
    EXPECT_EQ(lines_of(refused.err), 1) << refused.err;
  }
}

TEST(RunStats, SettingsThatAreWrongAndOfNoUse_OneLineEach) {
  const std::string library = freehold({"run", "--", "sh", "-c", "printf %s \"$LD_PRELOAD\""}).out;
  for (const std::string name : {"FREEHOLD_STATS_FD", "FREEHOLD_CHECK_FILL", "FREEHOLD_CHECK_STACKS"}) {
    const Ended ended = Process({built("ends_clean")}, {{"LD_PRELOAD", library}, {name, "garbage"}}).wait();
    EXPECT_TRUE(ended.exited_with(0)) << name;
    EXPECT_EQ(lines_of(ended.err), 1) << ended.err;
    EXPECT_NE(ended.err.find(name), std::string::npos) << ended.err;
  }
}

}  // namespace
}  // namespace freehold::tests
