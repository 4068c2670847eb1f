// SPDX-License-Identifier: MIT
// Which treatments can be tried on a program, and what cannot, in words.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tools/doctor/facts/experiment.hpp"
#include "tools/doctor/run/memory_examination.hpp"

namespace freehold::doctor::command {

// The origin of a program's malloc, told from the files that it had mapped as code.
struct MallocOrigin {
  bool glibc = true;
  bool built_in = false;  // in a program's own file, where no library can come before it
  std::string file;       // that has it, if it is not glibc's
};
[[nodiscard]] MallocOrigin malloc_origin(const std::set<std::string>& files);

// The variants, the program as it is first. `wished`: the words of --allocators; none: all that are there.
// Throws Failure for a word that cannot be understood, or a library that is asked for by name and not there.
[[nodiscard]] std::vector<doctor::Variant> variants_of(const std::optional<std::string>& wished, const MallocOrigin& origin,
                                                       unsigned cpus, std::vector<std::string>& notes);

// The same for the question of memory.
[[nodiscard]] doctor::MemoryTools memory_tools_for(const std::set<std::string>& files,
                                                   const std::optional<std::string>& allocators,
                                                   std::vector<std::string>& notes);

// Finds the probe's library; empty: a note says why it is missing.
[[nodiscard]] std::string find_probe(const MallocOrigin& origin, std::vector<std::string>& notes);

}  // namespace freehold::doctor::command
