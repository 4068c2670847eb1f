// SPDX-License-Identifier: MIT
// For subcommands that look at a process which runs: its number, and why it cannot be looked at.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "tools/live/refusal.hpp"

namespace freehold::inline tools {

// Throws Failure with one line, if it is no number of a process. `command`: "stats".
[[nodiscard]] pid_t process_number(const std::string& command, const std::optional<std::string>& pid);

// Names what a subcommand reads of the process: "statistics", in the layout of this version.
struct LiveSubject {
  const char* name;
  std::uint32_t version;
};
// Tells why the kernel hides the process: one line with the way out, for the user who asks.
[[nodiscard]] std::string why_hidden(pid_t pid, std::uint64_t owner, std::uint64_t reader);
// Tells why the kernel shows the process and not its memory. `yama_scope`: kernel.yama.ptrace_scope; none: the kernel has no
// Yama.
[[nodiscard]] std::string why_memory_is_closed(pid_t pid, std::optional<unsigned> yama_scope);
// One line with the way out. `version`: the process's, of LiveRefusal::kOtherVersion.
[[nodiscard]] std::string why_refused(freehold::live::LiveRefusal refusal, pid_t pid, const LiveSubject& subject,
                                      std::uint32_t version);

}  // namespace freehold::inline tools
