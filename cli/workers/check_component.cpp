// SPDX-License-Identifier: MIT
// Checks whether a shared object is a component, in a process of its own, since loading it runs its constructors.
#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cli/support/failure.hpp"
#include "cli/support/file_descriptor.hpp"
#include "cli/workers/run.hpp"
#include "freehold/component.h"

namespace freehold::cli::workers {
namespace {

constexpr unsigned kSecondsToLoad = 30;

[[noreturn]] void load(const std::string& path, int complaints) {
  ::alarm(kSecondsToLoad);
  void* const object = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (object == nullptr || ::dlsym(object, FREEHOLD_COMPONENT_NAME) == nullptr) {
    const char* const why = ::dlerror();
    const ssize_t written = ::write(complaints, why, std::strlen(why));
    ::_exit(written > 0 ? 1 : 2);
  }
  ::_exit(0);
}

}  // namespace

void check_component(const std::string& path) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw Failure(kExitRefused, error_text(errno));
  FileDescriptor reading(ends[0]), writing(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) throw Failure(kExitRefused, fmt::format("cannot start a process: {}", error_text(errno)));
  if (child == 0) load(path, writing.get());
  writing.close();
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  char why[1024];
  const ssize_t length = ::read(reading.get(), why, sizeof why);
  if (length > 0)
    throw Failure(kExitRefused, fmt::format("--component: {}", printable({why, static_cast<std::size_t>(length)})));
  throw Failure(kExitRefused, fmt::format("--component: {} {} while it is loaded", printable(path),
                                          WIFSIGNALED(status) ? fmt::format("is killed by signal {}", WTERMSIG(status))
                                                              : "ends the process"));
}

}  // namespace freehold::cli::workers
