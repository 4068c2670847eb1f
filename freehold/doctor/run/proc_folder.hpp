// SPDX-License-Identifier: MIT
// Where the kernel tells of a process.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <string>

namespace freehold::doctor {

[[nodiscard]] inline std::filesystem::path proc_folder(pid_t pid) {
  return std::filesystem::path("/proc") / std::to_string(pid);
}

}  // namespace freehold::doctor
