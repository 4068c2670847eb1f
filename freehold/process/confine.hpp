// What a worker may do, for a component that is not trusted with all that its user may: files below some folders only
// (Landlock), no sockets (seccomp), no programs that gain rights (no_new_privs). The worker asks for it before it loads the
// component, and its children inherit it. A kernel that refuses ends the worker: WorkerExit::kNotConfined.
//
// Always readable: the component's own file, the system's libraries, /proc/self. Always writable: /dev/null. The standard
// files and the table are open already, so nothing keeps the component from them.
#pragma once
#include <string>
#include <vector>

namespace freehold::process {

struct Confinement {
  bool no_network = false;              // socket() fails with EACCES, and io_uring is not there
  bool files = false;                   // only these, and what is always allowed
  std::vector<std::string> readable{};  // files and folders, with all that is in them; programs there may be run
  std::vector<std::string> writable{};  // readable, too

  [[nodiscard]] bool wanted() const noexcept { return no_network || files; }
};

// As the value of the environment variable that a worker gets, and back.
inline constexpr const char* kConfineVariable = "FREEHOLD_CONFINE";
[[nodiscard]] std::string text_of(const Confinement& confinement);
[[nodiscard]] Confinement confinement_of(const std::string& text);

// Confines this thread and what it starts. Returns an errno, and which part was refused.
[[nodiscard]] int confine(const Confinement& confinement, const char*& part) noexcept;

}  // namespace freehold::process
