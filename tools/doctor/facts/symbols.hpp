// SPDX-License-Identifier: MIT
// Names for the return addresses of a recording, from the memory map that the probe left beside it and the files that it
// names. Debug information gives file and line, and functions that were inlined; without it, the symbol table's names must
// do; and code that was made at run time has the names that the process left for perf (perf_map.hpp). One thread. Cost:
// reading a file's debug information at its first address, then microseconds an address; remembered.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace freehold::doctor {

// The name of a function as its source has it, from the linker's: C++'s and, with libiberty, Rust's. Others stay as they
// are.
[[nodiscard]] std::string demangled(const char* name);

struct Frame {
  std::string function;  // its name, demangled; empty: unknown
  std::string file;      // source file; empty: unknown
  unsigned line = 0;
  std::string module;  // file of the program or library
  bool inlined = false;
  bool is_runtime_code =
      false;  // whether it is the program's own, in code that its interpreter or compiler made at run time

  // "parse(std::string const&) at parse.cpp:210", "malloc in libc.so.6", "0x1234 in prog"
  [[nodiscard]] std::string text() const;
};

class Symbols {
 public:
  // Reads the recording's .maps file, or /proc/PID/maps. A map that cannot be read gives addresses without names.
  explicit Symbols(const std::filesystem::path& maps);
  Symbols(const Symbols&) = delete;
  Symbols& operator=(const Symbols&) = delete;
  ~Symbols();

  // Returns the frames of a call whose return address is `address`: the innermost inlined function first, the one that is
  // really called last. Never empty.
  [[nodiscard]] const std::vector<Frame>& frames(std::uint64_t address);

 private:
  struct Library;
  std::unique_ptr<Library> library_;
  std::map<std::uint64_t, std::vector<Frame>> known_;
};

}  // namespace freehold::doctor
