// SPDX-License-Identifier: MIT
// Allocators that a program brings along: linked into it or into one of its libraries (jemalloc, tcmalloc, mimalloc,
// snmalloc, rpmalloc), or part of a language's runtime (Go, CPython, the JVM, PHP, V8). No preloaded malloc reaches the
// memory that they take. They are recognised by their symbols; in a stripped file, by other content that only they have.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace freehold::doctor {

// A function's place in a file, for a uprobe.
struct FunctionPlace {
  std::string file;
  std::uint64_t offset = 0;

  friend auto operator<=>(const FunctionPlace&, const FunctionPlace&) = default;
};

struct OwnMalloc {
  std::string name;                   // "jemalloc", "CPython's allocator"
  std::string file;                   // file that has it
  bool is_reached = false;            // whether it is the file's malloc, which a preloaded library comes before
  std::set<FunctionPlace> functions;  // those whose calls are its allocations; empty: not known, or it has no calls
  std::optional<std::pair<std::string, std::string>> use_malloc;  // variable and value by which it leaves all to malloc
};

// Finds them. `files`: those that the program has mapped as code.
[[nodiscard]] std::vector<OwnMalloc> own_mallocs(const std::set<std::string>& files);
// Finds the allocating functions of the C library in the files: what arrives there could arrive at a preloaded malloc.
[[nodiscard]] std::set<FunctionPlace> malloc_functions(const std::set<std::string>& files);
// Says whether the file is a Go program, which asks the kernel itself: static ones ignore what is preloaded.
[[nodiscard]] bool is_go_program(const std::string& file);
// Every variable and value of OwnMalloc::use_malloc that there can be, as "NAME=VALUE".
[[nodiscard]] std::vector<std::string> known_switches();

}  // namespace freehold::doctor
