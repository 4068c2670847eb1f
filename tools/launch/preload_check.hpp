// SPDX-License-Identifier: MIT
// Whether Freehold's malloc serves a process, and why not, from what the kernel says of the process: the files that it has
// mapped, its environment as it was started, its program's headers. The process is neither stopped nor changed.
//
//   A program's malloc is that of the first of these which has one: the program itself, the libraries of LD_PRELOAD in
//   their order, the libraries that it is linked with.
#pragma once
#include <sys/types.h>

#include <string>

namespace freehold::inline tools {

enum class Preload {
  kServed,
  kEnvironment,   // LD_PRELOAD does not name the library
  kPath,          // it names a file that is not there, or cannot be read
  kPrivileges,    // setuid, setgid or file capabilities: the dynamic linker ignores LD_PRELOAD
  kStatic,        // no dynamic linker
  kOtherMalloc,   // another malloc comes first
  kMusl,          // another C library
  kArchitecture,  // another machine
  kUnknown,       // may not be looked at, or has ended
};
[[nodiscard]] const char* name_of(Preload preload);  // "served", "environment", ...

struct PreloadCheck {
  pid_t process = 0;
  std::string program;  // its file
  Preload preload = Preload::kUnknown;
  std::string why;      // one line; the library where it serves
  std::string way_out;  // empty: none is needed

  friend bool operator==(const PreloadCheck&, const PreloadCheck&) = default;
};

// `library`: the file that ought to serve. `is_traced`: the kernel then gives a program none of the rights that its file
// promises.
[[nodiscard]] PreloadCheck check_preload(pid_t process, const std::string& library, bool is_traced = false);

}  // namespace freehold::inline tools
