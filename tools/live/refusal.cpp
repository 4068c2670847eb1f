// SPDX-License-Identifier: MIT
#include "tools/live/refusal.hpp"

#include <cerrno>
#include <filesystem>
#include <string>

#include "tools/live/proc_folder.hpp"
#include "tools/live/process.hpp"

namespace freehold::live {

LiveRefusal refusal_of(pid_t pid) {
  constexpr unsigned long kKernelThread = 0x200000;  // the kernel's PF_KTHREAD
  const auto fields = stat_fields(proc_folder(pid));
  if (fields.size() <= StatField::kSystemTime) return LiveRefusal::kNoProcess;
  if (thread_with_memory(pid) == 0) return LiveRefusal::kEnded;
  if ((std::stoul(fields[StatField::kFlags]) & kKernelThread) != 0) return LiveRefusal::kKernelThread;
  if (!maps_of(pid).empty()) return LiveRefusal::kNone;
  // It may have ended between the two looks.
  if (!std::filesystem::exists(proc_folder(pid))) return LiveRefusal::kNoProcess;
  return thread_with_memory(pid) == 0 ? LiveRefusal::kEnded : LiveRefusal::kNotAllowed;
}

LiveRefusal refusal_meanwhile(pid_t pid, int error, LiveRefusal why) {
  if (const LiveRefusal now = refusal_of(pid); now != LiveRefusal::kNone) return now;
  return error == ESRCH ? LiveRefusal::kEnded : why;
}

}  // namespace freehold::live
