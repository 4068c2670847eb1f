// SPDX-License-Identifier: MIT
#include "tools/support/live_process.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>

#include "tools/live/process.hpp"
#include "tools/support/arguments.hpp"
#include "tools/support/failure.hpp"

namespace freehold::inline tools {

using freehold::live::LiveRefusal;

pid_t process_number(const std::string& command, const std::optional<std::string>& pid) {
  constexpr std::uint32_t kMostPid = 4'194'304;  // the kernel's own limit
  if (!pid) throw Failure(kExitRefused, fmt::format("{}: which process? pgrep NAME tells its number", command));
  return static_cast<pid_t>(parse_number(command, *pid, 1, kMostPid));
}

namespace {

std::optional<unsigned> yama_scope() {
  std::ifstream in("/proc/sys/kernel/yama/ptrace_scope");
  unsigned scope = 0;
  return in >> scope ? std::optional(scope) : std::nullopt;
}

}  // namespace

std::string why_hidden(pid_t pid, std::uint64_t owner, std::uint64_t reader) {
  // In a container root has few rights.
  const char* const stronger = reader == 0 ? "with the right CAP_SYS_PTRACE" : "as root";
  if (owner != reader)
    return fmt::format("process {} belongs to user {}; run freehold as that user, or {}", pid, owner, stronger);
  return fmt::format(
      "process {} does not let itself be looked at: it forbids core dumps (PR_SET_DUMPABLE), or has rights that you have "
      "not; run freehold {}",
      pid, stronger);
}

std::string why_memory_is_closed(pid_t pid, std::optional<unsigned> yama_scope) {
  constexpr unsigned kRootOnly = 2, kNobody = 3;
  if (yama_scope == kRootOnly)
    return fmt::format(
        "kernel.yama.ptrace_scope is 2, so that only root may read the memory of process {}; run freehold as root", pid);
  if (yama_scope == kNobody)
    return fmt::format(
        "kernel.yama.ptrace_scope is 3, so that no process may read the memory of process {}; start the system with a "
        "smaller one",
        pid);
  return fmt::format(
      "the system does not let you read the memory of process {} (kernel.yama.ptrace_scope, or a filter of system "
      "calls); run freehold as root, or start the program by freehold run --live",
      pid);
}

std::string why_refused(LiveRefusal refusal, pid_t pid, const LiveSubject& subject, std::uint32_t version) {
  switch (refusal) {
    case LiveRefusal::kNone: break;
    case LiveRefusal::kNoProcess: return fmt::format("there is no process {}; pgrep NAME tells its number", pid);
    case LiveRefusal::kEnded:
      return fmt::format("process {} has ended already; its parent has not asked for its end yet", pid);
    case LiveRefusal::kKernelThread: return fmt::format("process {} is a thread of the kernel's, which has no malloc", pid);
    case LiveRefusal::kNotAllowed: return why_hidden(pid, freehold::live::user_of(pid), ::geteuid());
    case LiveRefusal::kMemoryNotToBeRead: {
      // CAP_PERFMON, which root may have in a container, shows the mappings of all processes, but no memory.
      const std::uint64_t owner = freehold::live::user_of(pid), reader = ::geteuid();
      return owner != reader ? why_hidden(pid, owner, reader) : why_memory_is_closed(pid, yama_scope());
    }
    case LiveRefusal::kNoFreehold:
      return fmt::format("process {} does not run under Freehold; start the program by freehold run -- PROGRAM", pid);
    case LiveRefusal::kNotBegun:
      return fmt::format(
          "process {} has loaded libfreehold.so, but nothing of its {} was found: it has not allocated yet, or that "
          "Freehold is older than this command",
          pid, subject.name);
    case LiveRefusal::kOtherVersion:
      return fmt::format(
          "the Freehold of process {} keeps its {} in version {}, this command reads version {}; use the command of that "
          "Freehold",
          pid, subject.name, version, subject.version);
    case LiveRefusal::kNoProfile:
      return fmt::format("process {0} runs under Freehold, but keeps no heap profile; freehold heap start {0} begins one",
                         pid);
    case LiveRefusal::kChanging:
      return fmt::format("the {} of process {} could not be read, or changed all the time; ask again", subject.name, pid);
  }
  return {};
}

}  // namespace freehold::inline tools
