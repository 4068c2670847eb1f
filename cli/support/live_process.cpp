// SPDX-License-Identifier: MIT
#include "cli/support/live_process.hpp"

#include <fmt/format.h>

#include "cli/support/arguments.hpp"
#include "cli/support/failure.hpp"
#include "freehold/doctor/run/attached.hpp"

namespace freehold::cli {

using freehold::doctor::LiveRefusal;

pid_t process_number(const std::string& command, const std::optional<std::string>& pid) {
  constexpr std::uint32_t kMostPid = 4'194'304;  // the kernel's own limit
  if (!pid) throw Failure(kExitRefused, fmt::format("{}: which process? pgrep NAME tells its number", command));
  return static_cast<pid_t>(parse_number(command, *pid, 1, kMostPid));
}

std::string why_refused(LiveRefusal refusal, pid_t pid, const LiveSubject& subject, std::uint32_t version) {
  switch (refusal) {
    case LiveRefusal::kNone: break;
    case LiveRefusal::kNoProcess: return fmt::format("there is no process {}; pgrep NAME tells its number", pid);
    case LiveRefusal::kEnded:
      return fmt::format("process {} has ended already; its parent has not asked for its end yet", pid);
    case LiveRefusal::kKernelThread: return fmt::format("process {} is a thread of the kernel's, which has no malloc", pid);
    case LiveRefusal::kNotAllowed:
      return fmt::format(
          "process {} belongs to user {} or does not let itself be looked at; run freehold as that user, or as root", pid,
          freehold::doctor::user_of(pid));
    case LiveRefusal::kMemoryNotToBeRead:
      return fmt::format(
          "the system does not let you read the memory of process {} (kernel.yama.ptrace_scope, or a filter of system "
          "calls); run freehold as root, or start the program by freehold run --live",
          pid);
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
      return fmt::format(
          "process {} runs under Freehold, but keeps no heap profile; start the program with FREEHOLD_PROFILE=1 freehold "
          "run -- PROGRAM, or let it call freehold_profile_start()",
          pid);
    case LiveRefusal::kChanging:
      return fmt::format("the {} of process {} could not be read, or changed all the time meanwhile; ask again",
                         subject.name, pid);
  }
  return {};
}

}  // namespace freehold::cli
