// SPDX-License-Identifier: MIT
// Where the kernel tells of a process. It may end between any two calls: reading one of its files that is open then fails
// (ESRCH), and a stream's iterators turn that into an exception.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace freehold::doctor {

[[nodiscard]] inline std::filesystem::path proc_folder(pid_t pid) {
  return std::filesystem::path("/proc") / std::to_string(pid);
}

// All of a file of the kernel's. Empty also: it is not there, may not be read, or its process ended meanwhile.
[[nodiscard]] inline std::string text_of_proc_file(const std::filesystem::path& file) {
  const std::ifstream in(file);
  std::ostringstream text;
  if (!in || !(text << in.rdbuf())) return {};  // an error while reading shows here, and throws nothing
  return std::move(text).str();
}

}  // namespace freehold::doctor
