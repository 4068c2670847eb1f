// SPDX-License-Identifier: MIT
// freehold run from outside. The preloaded library does nothing here: what is tested holds for any.
#include <elf.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "tests/cli/command.hpp"

namespace freehold::tests {
namespace {

Environment with_library() { return {{"FREEHOLD_LIBRARY", built("libpreloadable.so")}}; }

Ended run(std::vector<std::string> words) {
  words.insert(words.begin(), "run");
  return freehold(std::move(words), with_library());
}

// With --json a supervisor waits for the program.
// With --json a supervisor waits for the program.
TEST(Run, ProgramThatExits_CodeAndOutputPassThrough) {
  const Folder folder;
  for (const std::string& option : {std::string("--"), "--json=" + (folder / "run.json")})
    for (const int code : {0, 7, 255}) {
      const Ended ended = run({option, "sh", "-c", "echo out; echo err >&2; exit " + std::to_string(code)});
      EXPECT_TRUE(ended.exited_with(code)) << option;
      EXPECT_EQ(ended.out, "out\n");
      EXPECT_TRUE(option == "--" ? ended.err == "err\n" : ended.err.starts_with("err\n")) << ended.err;
    }
}

TEST(Run, OptionsOfCheckedMode_ReachTheProgramsEnvironment) {
  const std::string print = "env | grep -E '^FREEHOLD_(CHECK|GUARD)' | sort | tr '\n' ' '";
  const auto environment_with = [&](std::vector<std::string> words) {
    words.insert(words.end(), {"--", "sh", "-c", print});
    return run(words).out;
  };
  EXPECT_EQ(environment_with({}), "");
  EXPECT_EQ(environment_with({"--check"}), "FREEHOLD_CHECK=1 ");
  EXPECT_EQ(environment_with({"--leaks"}), "FREEHOLD_CHECK=1 FREEHOLD_CHECK_LEAKS=1 ");
  EXPECT_EQ(environment_with({"--stacks", "12"}), "FREEHOLD_CHECK=1 FREEHOLD_CHECK_STACKS=12 ");
  EXPECT_EQ(environment_with({"--guard-rate", "5000"}), "FREEHOLD_GUARD_RATE=5000 ");
}

TEST(Run, ProgramThatIsKilled_EndsByTheSameSignal) {
  for (const bool supervised : {false, true}) {
    std::vector<std::string> words{"--", "sh", "-c", "kill -SEGV $$"};
    if (supervised) words.insert(words.begin(), "--stats");
    EXPECT_TRUE(run(words).killed_by(SIGSEGV)) << supervised;
  }
}

TEST(Run, SignalToTheCommand_ReachesTheProgram) {
  const std::string script = "trap 'exit 42' TERM; echo ready; while :; do sleep 0.02; done";
  for (const char* option : {"--", "--stats"}) {
    Process process({command_path(), "run", option, "sh", "-c", script}, with_library());
    ASSERT_TRUE(process.wait_for_output("ready"));
    ::kill(process.pid(), SIGTERM);
    EXPECT_TRUE(process.wait().exited_with(42)) << option;
  }
}

TEST(Run, StoppedAndContinued_CommandStopsAndContinuesWithTheProgram) {
  const std::string script = "echo ready; while ! test -e \"$0\"; do sleep 0.02; done; exit 5";
  const Folder folder;
  Process process({command_path(), "run", "--stats", "sh", "-c", script, folder / "go"}, with_library());
  ASSERT_TRUE(process.wait_for_output("ready"));
  ::kill(process.pid(), SIGTSTP);
  int status = 0;
  ASSERT_EQ(::waitpid(process.pid(), &status, WUNTRACED), process.pid());
  ASSERT_TRUE(WIFSTOPPED(status)) << status;
  ::kill(process.pid(), SIGCONT);
  folder.file("go", "");
  EXPECT_TRUE(process.wait().exited_with(5));
}

TEST(Run, WhatCannotBeRun_RefusedInOneLine) {
  const struct {
    std::vector<std::string> words;
    const char* says;
    int code = 2;
  } cases[] = {{{"freehold-no-such-program"}, "no such program in PATH", 127},
               {{"./freehold-no-such-program"}, "no such program", 127},
               {{}, "no program given"},
               {{"--stats", "--"}, "no program given"},
               {{"--statistics", "true"}, "--statistics"},
               {{"--stacks", "deep", "--", "true"}, "--stacks"},
               {{"--guard-rate", "-1", "--", "true"}, "--guard-rate"},
               {{built("static_program")}, "link it with freehold::malloc"},
               {{"--json", "/no/such/folder/run.json", "sh", "-c", "echo ran"}, "No such file"},
               {{"--json", "/", "sh", "-c", "echo ran"}, "Is a directory"},
               {{"--json", "-", "sh", "-c", "echo ran"}, "- is standard output"}};
  for (const auto& [words, says, code] : cases) expect_refused(run(words), says, code);
  expect_refused(freehold({"run", "true"}, {{"FREEHOLD_LIBRARY", "/no/such/library.so"}}), "FREEHOLD_LIBRARY");
}

TEST(Run, SetuidProgramOfSomebodyElse_Refused) {
  if (::getuid() != 0) GTEST_SKIP() << "only root can make one";
  const Folder folder;
  const std::string program = folder.file("program", content_of("/bin/true"));
  ASSERT_EQ(::chown(program.c_str(), 65534, 65534), 0);
  ASSERT_EQ(::chmod(program.c_str(), 04755), 0);
  expect_refused(run({program}), "setuid");
  ASSERT_EQ(::chmod(program.c_str(), 02755), 0);
  expect_refused(run({program}), "setgid");
  ASSERT_EQ(::chmod(program.c_str(), 0755), 0);
  EXPECT_TRUE(run({program}).exited_with(0));
}

TEST(Run, ProgramForAnotherMachine_Refused) {
  const Folder folder;
  std::string foreign = content_of("/bin/true");
  const Elf64_Half machine = EM_S390;
  std::memcpy(foreign.data() + offsetof(Elf64_Ehdr, e_machine), &machine, sizeof machine);
  expect_refused(run({folder.file("foreign", foreign, 0755)}), "IBM Z");
  foreign[EI_CLASS] = ELFCLASS32;
  expect_refused(run({folder.file("narrow", foreign, 0755)}), "FREEHOLD_LIBRARY");
}

TEST(Run, ScriptOfAStaticProgramThroughEnv_Refused) {
  const Folder folder;
  const std::string name = "freehold-test-static";
  folder.file(name, content_of(built("static_program")), 0755);
  Environment environment = with_library();
  environment.emplace_back("PATH", folder / "" + ":/usr/bin:/bin");
  expect_refused(freehold({"run", folder.file("script", "#!/usr/bin/env " + name + "\n", 0755)}, environment),
                 "static program");
}

TEST(Run, Scripts_Run) {
  const Folder folder;
  EXPECT_EQ(run({folder.file("plain", "#!/bin/sh\necho $0 $1\n", 0755), "x"}).out, folder / "plain" + " x\n");
  EXPECT_EQ(run({folder.file("env", "#!/usr/bin/env -S sh -e\necho env\n", 0755)}).out, "env\n");
  EXPECT_EQ(run({folder.file("headless", "echo headless\n", 0755)}).out, "headless\n");
}

TEST(Run, WithoutProc_FindsTheLibraryBesideTheCommand) {
  const Folder folder;
  for (const char* part : {"bin", "lib"}) std::filesystem::create_directory(folder / part);
  std::filesystem::copy_file(command_path(), folder / "bin/freehold");
  std::filesystem::copy_file(built("libpreloadable.so"), folder / "lib/libfreehold.so");
  const Ended ended = Process({"unshare", "--mount", "sh", "-c",
                               "umount -l /proc || exit 77; cd \"$0\"/bin; "
                               "exec ./freehold run -- sh -c 'echo \"$LD_PRELOAD\"'",
                               folder.path()})
                          .wait();
  if (ended.exited_with(77) || ended.err.starts_with("unshare: ")) GTEST_SKIP() << ended.err;
  EXPECT_EQ(ended.out, folder / "lib/libfreehold.so\n") << ended.err;
}

TEST(Run, ProgramWithoutStats_SaysSoAndWritesNull) {
  const Folder folder;
  const Ended ended = run({"--json", folder / "run.json", "sh", "-c", "exit 3"});
  EXPECT_TRUE(ended.exited_with(3));
  EXPECT_EQ(lines_of(ended.err), 1) << ended.err;
  EXPECT_NE(ended.err.find("left no stats"), std::string::npos);
  const auto json = nlohmann::json::parse(content_of(folder / "run.json"));
  EXPECT_EQ(json.at("exit").at("code"), 3);
  EXPECT_TRUE(json.at("stats").is_null());
  EXPECT_EQ(json.at("program"), (std::vector<std::string>{"sh", "-c", "exit 3"}));
}

TEST(Help, StandardOutputThatIsFull_Exit2) {
  for (const std::string arguments : {"--help", "--version", "doctor --help"}) {
    const Ended ended = Process({"sh", "-c", "exec \"$0\" " + arguments + " >/dev/full", command_path()}).wait();
    EXPECT_TRUE(ended.exited_with(2)) << arguments << ' ' << ended.status;
    EXPECT_NE(ended.err.find("cannot write to standard output: No space left on device"), std::string::npos) << ended.err;
  }
}

TEST(Run, StandardErrorThatIsFullOrClosed_ExitCodeStays) {
  for (const char* nowhere : {" 2>/dev/full", " 2>&-"}) {
    const auto ended = [&](const std::string& arguments) {
      return Process({"sh", "-c", "exec \"$0\" " + arguments + nowhere, command_path()}).wait();
    };
    EXPECT_TRUE(ended("run --stats -- sh -c 'exit 7'").exited_with(7)) << nowhere;
    EXPECT_TRUE(ended("run --stats -- /no/such/program").exited_with(127)) << nowhere;
    EXPECT_TRUE(ended("run --no-such-option").exited_with(2)) << nowhere;
  }
}

TEST(Help, OptionThatIsNot_NamesTheSubcommandsHelp) {
  EXPECT_NE(run({"--stat", "true"}).err.find("--stat; did you mean '--stats'? See freehold run --help\n"),
            std::string::npos);
  expect_refused(freehold({}), "subcommand");
  EXPECT_NE(freehold({}).err.find("; see freehold --help\n"), std::string::npos);
}

TEST(Run, JsonToAFullDisk_OldFileStaysAndNothingElseIsLeft) {
  const Folder folder;
  const std::string disk = folder / "disk";
  ASSERT_EQ(::mkdir(disk.c_str(), 0755), 0);
  if (::mount("none", disk.c_str(), "tmpfs", 0, "size=8k,mode=755") != 0) GTEST_SKIP() << "cannot mount a small disk";
  struct Unmount {
    std::string disk;
    ~Unmount() { ::umount2(disk.c_str(), MNT_DETACH); }
  } const unmount{disk};
  folder.file("disk/run.json", "old\n");
  folder.file("disk/filler", std::string(4096, 'x'));  // the disk's last page
  const Ended ended = run({"--json", disk + "/run.json", "true"});
  EXPECT_TRUE(ended.exited_with(2)) << ended.status;
  EXPECT_NE(ended.err.find("No space left on device\n"), std::string::npos) << ended.err;
  EXPECT_EQ(content_of(disk + "/run.json"), "old\n");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(disk), {}), 2);
}

TEST(CommandLine, MistypedWord_TheNearestIsOffered) {
  expect_refused(freehold({"doctr", "--", "true"}), "'doctr'; did you mean 'doctor'? See freehold --help");
  expect_refused(freehold({"heap", "profle", "--", "true"}), "did you mean 'profile'? See freehold heap --help");
  expect_refused(freehold({"doctor", "--budgt", "--", "true"}), "did you mean '--budget'? See freehold doctor --help");
  expect_refused(freehold({"elephant"}), "elephant");
  EXPECT_EQ(freehold({"elephant"}).err.find("did you mean"), std::string::npos);
  EXPECT_EQ(freehold({"doctor", "--elephant"}).err.find("did you mean"), std::string::npos);
}

TEST(CommandLine, HelpOfACommandThatRunsAProgram_NamesIt) {
  EXPECT_NE(freehold({"run", "--help"}).out.find("Usage: freehold run [OPTIONS] [--] PROGRAM [ARG]...\n"),
            std::string::npos);
  EXPECT_NE(freehold({"heap", "profile", "--help"}).out.find("[--] PROGRAM [ARG]...\n"), std::string::npos);
  EXPECT_EQ(freehold({"stats", "--help"}).out.find("PROGRAM"), std::string::npos);
}

TEST(Command, HelpAndVersion_ExitZero) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--help"}, {"--version"}, {"run", "--help"}}) {
    const Ended ended = freehold(words);
    EXPECT_TRUE(ended.exited_with(0));
    EXPECT_NE(ended.out, "");
    EXPECT_EQ(ended.err, "");
  }
}

}  // namespace
}  // namespace freehold::tests
