// SPDX-License-Identifier: MIT
// Processes that the kernel does not let everybody look at: what the commands say that look at one. Of one that forbids core
// dumps only root sees the memory, on every kernel.
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <iterator>

#include "tests/cli/command.hpp"
#include "tests/cli/live_program.hpp"

namespace freehold::tests {
namespace {
namespace fs = std::filesystem;

constexpr uid_t kUser = 65'534;

// Root's tests become a user for it; others are one.
void be_user() {
  if (::geteuid() == 0 && (::setgid(kUser) != 0 || ::setuid(kUser) != 0)) ::_exit(98);
}

// A folder that a user can reach: the build may lie in a folder of root's.
class OpenFolder {
 public:
  OpenFolder() { fs::permissions(fs::path(folder_ / "x").parent_path(), fs::perms::all); }
  [[nodiscard]] std::string copy(const std::string& file) const {
    const std::string to = folder_ / fs::path(file).filename().string();
    fs::copy_file(file, to, fs::copy_options::skip_existing);
    return to;
  }

 private:
  Folder folder_;
};

void expect_refused(const Ended& ended, const std::string& why, const std::string& way_out) {
  tests::expect_refused(ended, why);
  EXPECT_NE(ended.err.find(way_out), std::string::npos) << ended.err;
}

std::vector<std::vector<std::string>> commands_for(pid_t pid) {
  const std::string process = std::to_string(pid);
  return {{"stats", process},
          {"heap", "snapshot", process},
          {"heap", "start", process},
          {"heap", "stop", process},
          {"doctor", "attach", process, "--for", "200ms"}};
}

Ended ask(const std::string& command, std::vector<std::string> words, const std::function<void()>& prepare) {
  words.insert(words.begin(), command);
  return Process(words, {}, prepare).wait();
}

TEST(HiddenProcess, OfTheSameUser_EachCommandSaysThatItHides) {
  const OpenFolder folder;
  const std::string command = folder.copy(command_path());
  Process subject({folder.copy(built("hides"))}, {}, [] {
    be_user();
    keep_input_open();
  });
  ASSERT_TRUE(subject.wait_for_output("ready"));
  for (const auto& words : commands_for(subject.pid())) {
    SCOPED_TRACE(words.front());
    const Ended ended = ask(command, words, be_user);
    expect_refused(ended, "does not let itself be looked at: it forbids core dumps", "as root");
    EXPECT_EQ(ended.err.find("belongs to"), std::string::npos) << ended.err;
  }
}

// A container's root has no rights outside.
TEST(HiddenProcess, RootWithoutTheRight_EachCommandNamesTheRight) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  const OpenFolder folder;
  Process subject({folder.copy(built("hides"))}, {}, [] {
    be_user();
    keep_input_open();
  });
  ASSERT_TRUE(subject.wait_for_output("ready"));
  const auto drop = [](std::initializer_list<int> rights) {
    for (const int right : rights)
      if (::prctl(PR_CAPBSET_DROP, right, 0, 0, 0) != 0) ::_exit(98);
  };
  for (const bool sees_mappings : {false, true}) {  // as CAP_PERFMON shows them since Linux 6.16, and no more
    for (const auto& words : commands_for(subject.pid())) {
      if (sees_mappings && words.front() == "doctor") continue;  // which needs no more
      SCOPED_TRACE(words.front());
      const Ended ended = ask(command_path(), words, [&] {
        drop({CAP_SYS_PTRACE});
        if (!sees_mappings) drop({CAP_PERFMON, CAP_SYS_ADMIN});
      });
      if (ended.exited_with(98)) GTEST_SKIP() << "rights cannot be dropped here";
      expect_refused(ended, "belongs to user 65534", "CAP_SYS_PTRACE");
    }
  }
}

TEST(HiddenProcess, OfAnotherUser_EachCommandNamesTheUser) {
  const OpenFolder folder;
  const std::string command = folder.copy(command_path());
  const pid_t roots = ::geteuid() == 0 ? ::getpid() : 1;
  for (const auto& words : commands_for(roots)) {
    SCOPED_TRACE(words.front());
    expect_refused(ask(command, words, be_user), "belongs to user 0", "as root");
  }
}

// As kernel.yama.ptrace_scope does it, which needs a kernel with Yama: the call that reads another's memory is refused.
void refuse_reading() {
  const sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{.len = std::size(program), .filter = const_cast<sock_filter*>(program)};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
    ::_exit(98);
}

TEST(HiddenProcess, SystemForbidsReading_SaysHowToAllowIt) {
  const LiveProgram subject("heap_held", "quiet", {{"FREEHOLD_PROFILE", "1048576"}});
  for (const auto& words : commands_for(subject.pid())) {
    if (words.front() == "doctor") continue;  // which needs no memory of it
    SCOPED_TRACE(words.front());
    expect_refused(ask(command_path(), words, refuse_reading), "kernel.yama.ptrace_scope", "freehold run --live");
  }
}

}  // namespace
}  // namespace freehold::tests
