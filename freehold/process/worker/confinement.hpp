// SPDX-License-Identifier: MIT
// The rights of a worker, for a component that should not have all rights of its user: files below some folders only
// (Landlock), no sockets (seccomp), no programs that gain rights (no_new_privs). The worker takes them up before it loads
// the component, and its children inherit the limits. If the kernel refuses, the worker ends.
#pragma once
#include <string>
#include <vector>

namespace freehold::process {

/// The rights of a worker and of the programs that it starts. Without one of the two limits it has those of its user.
///
/// Always readable: the component's own file, the system's libraries, /proc/self. Always writable: /dev/null. The standard
/// files and the task table are open before the limits begin, so a component can use them.
struct Confinement {
  bool no_network = false;  ///< socket() fails with EACCES, and io_uring is not available
  bool files = false;       ///< only the files below can be opened, and those that are always allowed
  /// Files, and folders with all that is in them. Programs there may be run.
  std::vector<std::string> readable{};
  std::vector<std::string> writable{};  ///< the same, for writing and reading

  /// @return whether there is a limit at all.
  [[nodiscard]] bool wanted() const noexcept { return no_network || files; }
};

}  // namespace freehold::process
