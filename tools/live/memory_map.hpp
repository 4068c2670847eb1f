// SPDX-License-Identifier: MIT
// Reads from the text of /proc/PID/maps which files' code and data a process has mapped, and where. Everything that asks
// where an address belongs, or which files a program consists of, reads the text here.
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace freehold::live {

// A range of addresses that a file's code lies at.
struct CodeMapping {
  std::uint64_t begin = 0, end = 0;
  std::uint64_t offset = 0;  // offset of the range's begin in the file, bytes
  std::string file;          // the whole path, which may have blanks
  bool operator==(const CodeMapping&) const = default;
};

// A range of addresses that holds variables of a file's code: private and writable, of the file itself or behind that
// (.bss).
struct DataMapping {
  std::uint64_t begin = 0, end = 0;
  std::string file;
};

// Reads `maps`, in its order. Lines that are damaged, and code that no file has, are left out.
[[nodiscard]] std::vector<CodeMapping> code_mappings(const std::string& maps);
[[nodiscard]] std::vector<DataMapping> data_mappings(const std::string& maps);
[[nodiscard]] std::set<std::string> files_of(const std::vector<CodeMapping>& mappings);

}  // namespace freehold::live
