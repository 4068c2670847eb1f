// SPDX-License-Identifier: MIT
// Finds the allocators' shared libraries: libfreehold.so beside this command, the peers in Debian's folders. Files that the
// command carries itself (carried.hpp) come before those beside it, which may be of another version.
#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace freehold::inline tools {

// An allocator to run programs under. No library: the one that the program itself was built with.
struct Allocator {
  std::string name;     // as the user calls it
  std::string library;  // absolute path for LD_PRELOAD, or empty
};

// Names the places of libfreehold.so, best first, for a command that lies in `command_folder`: the installed tree, the build
// tree.
[[nodiscard]] std::vector<std::filesystem::path> freehold_candidates(const std::filesystem::path& command_folder);
// The library of this installation: FREEHOLD_LIBRARY if set, otherwise found relative to the running command. Throws
// Failure(kExitRefused) when none is found.
[[nodiscard]] std::string find_freehold_library();
// A library of the command's own, "libfreehold-probe.so": in freehold/ below libfreehold.so's usual places, or beside it.
// Throws Failure(kExitRefused) when it is not there.
[[nodiscard]] std::string find_own_library(const std::string& name);
// A program of this installation that lies beside the command, or in its libexec folder. Throws Failure(kExitRefused).
[[nodiscard]] std::string find_own_program(const std::string& name);
// "system", "freehold", a peer's name, a path, or "name=path". Throws Failure(kExitRefused).
[[nodiscard]] Allocator find_allocator(const std::string& text);
// The peers that find_allocator knows by name.
[[nodiscard]] std::vector<std::string> known_peers();
// LD_PRELOAD with `library` in front of its present value, so that the library's malloc is used.
[[nodiscard]] std::string preload_value(const std::string& library, const char* existing);

// In a worker: the file that this process's malloc really comes from, because the dynamic linker ignores a library that it
// cannot preload.
void note_malloc_library(std::span<char> name);
// For the worker's parent: checks that malloc came from `library`, or from libc if that is empty. Returns the complaint, or
// an empty text.
[[nodiscard]] std::string wrong_malloc(const std::string& library, const std::string& actual);

}  // namespace freehold::inline tools
