// SPDX-License-Identifier: MIT
#include "freehold/process/worker/confinement.hpp"

#include <sstream>

#include "freehold/os/sandbox.hpp"
#include "freehold/process/worker/worker_protocol.hpp"

namespace freehold::process {
namespace {

constexpr const char* kAlwaysReadable[] = {"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/proc/self"};

int confine_files(const Confinement& confinement) noexcept {
  using os::FileAccess;
  os::FileRules rules;
  int error = 0;
  const auto allow = [&](const char* path, FileAccess access) {
    if (error == 0) error = rules.allow(path, access);
  };
  for (const char* path : kAlwaysReadable) allow(path, FileAccess::kRead);
  allow("/dev/null", FileAccess::kReadWrite);
  for (const std::string& path : confinement.readable) allow(path.c_str(), FileAccess::kRead);
  for (const std::string& path : confinement.writable) allow(path.c_str(), FileAccess::kAll);
  return error != 0 ? error : rules.enforce();
}

}  // namespace

std::string text_of(const Confinement& confinement) {
  std::string text = confinement.no_network ? "n\n" : "";
  if (confinement.files) text += "f\n";
  for (const std::string& path : confinement.readable) text += "r" + path + "\n";
  for (const std::string& path : confinement.writable) text += "w" + path + "\n";
  return text;
}

Confinement confinement_of(const std::string& text) {
  Confinement confinement;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    switch (line[0]) {
      case 'n': confinement.no_network = true; break;
      case 'f': confinement.files = true; break;
      case 'r': confinement.readable.push_back(line.substr(1)); break;
      default: confinement.writable.push_back(line.substr(1));
    }
  }
  return confinement;
}

int confine(const Confinement& confinement, const char*& part) noexcept {
  part = "no_new_privs";
  if (const int error = os::forbid_new_privileges(); error != 0) return error;
  part = "Landlock";
  if (confinement.files)
    if (const int error = confine_files(confinement); error != 0) return error;
  part = "seccomp";
  return confinement.no_network ? os::refuse_sockets() : 0;
}

}  // namespace freehold::process
