// SPDX-License-Identifier: MIT
// Where the kernel tells of a process. It may end between any two calls: reading one of its files that is open then fails
// (ESRCH), and a stream's iterators turn that into an exception.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace freehold::live {

[[nodiscard]] inline std::filesystem::path proc_folder(pid_t pid) {
  return std::filesystem::path("/proc") / std::to_string(pid);
}

// All of a file of the kernel's. Empty also: it is not there, may not be read, or its process has ended.
[[nodiscard]] inline std::string text_of_proc_file(const std::filesystem::path& file) {
  const std::ifstream in(file);
  std::ostringstream text;
  if (!in || !(text << in.rdbuf())) return {};  // an error while reading shows here, and throws nothing
  return std::move(text).str();
}

// The number behind "Rss:" in lines of "Rss:   12 kB".
[[nodiscard]] inline std::uint64_t number_in(const std::string& text, const std::string& name) {
  const std::size_t at = text.find("\n" + name);
  if (at == std::string::npos) return 0;
  return std::strtoull(text.c_str() + at + 1 + name.size(), nullptr, 10);
}

// The fields of the file `stat` in a process's or a thread's folder, behind the name, which may hold anything. Empty: as
// above.
[[nodiscard]] inline std::vector<std::string> stat_fields(const std::filesystem::path& folder) {
  const std::string text = text_of_proc_file(folder / "stat");
  const std::size_t end = text.rfind(')');
  std::vector<std::string> fields;
  if (end == std::string::npos) return fields;
  std::istringstream words(text.substr(end + 1));
  for (std::string word; words >> word;) fields.push_back(word);
  return fields;
}
// Their places; a field of proc(5) is three further on.
struct StatField {
  static constexpr std::size_t kState = 0, kFlags = 6, kMinorFaults = 7, kUserTime = 11, kSystemTime = 12, kCpu = 36;
};

}  // namespace freehold::live
