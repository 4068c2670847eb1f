// SPDX-License-Identifier: MIT
// Kinds of misuse: each has a name and a function that commits it. Each kind runs in a separate process.
//
//   malloc_program KIND     commits it; 0 and "still alive" if the process is not ended for it
//   malloc_program --list   the names of all kinds, one a line
//
// Exit code 2: there is no such kind. 3: another malloc answers than the one that is expected. 77: the kind needs what this
// malloc does not do. tests/misuse/kinds.toml says what each kind is and which report it must end in.
#pragma once
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string_view>

namespace freehold::test {

struct Kind {
  const char* name;
  void (*commit)();
};
using Kinds = std::span<const Kind>;

// Ends the process at once, without exit handlers: a later look by the allocator does not count for the kind.
[[noreturn]] inline void end_here() {
  std::puts("still alive");
  std::fflush(stdout);
  ::_exit(0);
}

// Ends the process because the kind needs a function that is not there.
[[noreturn]] inline void not_applicable(const char* function) {
  std::printf("this malloc has no %s\n", function);
  std::fflush(stdout);
  ::_exit(77);
}

// A function of this process by its name; the process ends if it has no such function.
template <class Function>
Function* needed(const char* name) {
  void* const found = ::dlsym(RTLD_DEFAULT, name);
  if (found == nullptr) not_applicable(name);
  return reinterpret_cast<Function*>(found);
}

inline int list_kinds(std::initializer_list<Kinds> groups) {
  for (const Kinds group : groups)
    for (const Kind& kind : group) std::puts(kind.name);
  return 0;
}

// The main function of a program of kinds, once it knows that the right malloc answers.
inline int run_kind(int argc, char** argv, std::initializer_list<Kinds> groups) {
  if (argc == 2 && std::string_view(argv[1]) == "--list") return list_kinds(groups);
  for (const Kinds group : groups)
    for (const Kind& kind : group)
      if (argc == 2 && std::strcmp(kind.name, argv[1]) == 0) {
        kind.commit();
        std::puts("still alive");
        return 0;
      }
  return 2;
}

}  // namespace freehold::test
