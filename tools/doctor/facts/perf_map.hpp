// SPDX-License-Identifier: MIT
// Names of code that a process made at run time, where it left them for perf: /tmp/perf-PID.map, a line "begin size name" in
// hexadecimal for each piece of code. CPython, node, Java, Ruby's YJIT and others write such files
// (tools/perf/Documentation/jit-interface.txt of Linux).
//
// /tmp is everybody's. So a file is believed only if it is a regular file of this user's, root's, or of the user whose
// process it names; at most kMostBytes of it are read, and lines that say nothing are left out. Where pieces overlap, the
// later line is right: memory of code is used again. One thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "tools/doctor/facts/symbols.hpp"

namespace freehold::doctor {

class PerfMap {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{128} << 20;  // bytes of a file that are read, from its beginning
  static constexpr std::size_t kMostNameBytes = 1024;                // bytes of a name that are kept

  PerfMap() = default;
  // Reads what the process `pid` left; empty without a file, or with one not to be believed. In another container its folder
  // and its number there count, as long as it runs.
  [[nodiscard]] static PerfMap of_process(std::uint64_t pid);
  // Reads a file of a process of `user`.
  [[nodiscard]] static PerfMap of_file(const std::filesystem::path& file, std::uint64_t user);

  // Adds a piece of code. False if the line is not part of a map.
  bool add(std::string_view line);

  // Returns none if the address is in no piece of code.
  [[nodiscard]] std::optional<Frame> frame(std::uint64_t address) const;
  [[nodiscard]] std::size_t size() const { return code_.size(); }

 private:
  struct Piece {
    std::uint64_t end;
    std::string name;
  };
  std::map<std::uint64_t, Piece> code_;  // keyed by their beginnings; pieces do not overlap
};

// The function that such a name tells: with its file and line where the name has them, and marked as the program's own
// unless it belongs to the interpreter or its libraries.
[[nodiscard]] Frame frame_of_runtime_name(std::string_view name);

}  // namespace freehold::doctor
