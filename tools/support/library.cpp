// SPDX-License-Identifier: MIT
#include "tools/support/library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "tools/support/carried.hpp"
#include "tools/support/failure.hpp"

namespace freehold::inline tools {
namespace {
namespace fs = std::filesystem;

constexpr std::string_view kLibrary = "libfreehold.so";

struct Peer {
  std::string_view name;
  std::string_view file;
  std::string_view package;  // Debian's
};
constexpr std::array kPeers{
    Peer{"jemalloc", "libjemalloc.so.2", "libjemalloc2"},
    Peer{"tcmalloc", "libtcmalloc_minimal.so.4", "libtcmalloc-minimal4"},
    Peer{"tbbmalloc", "libtbbmalloc_proxy.so.2", "libtbbmalloc2"},
    Peer{"mimalloc", "libmimalloc.so.2", "libmimalloc2.0"},
};

// Debian's folder of this architecture first, then those of other distributions and of `make install`.
#if defined(__x86_64__)
constexpr const char* kMultiarch = "x86_64-linux-gnu";
#elif defined(__aarch64__)
constexpr const char* kMultiarch = "aarch64-linux-gnu";
#else
constexpr const char* kMultiarch = "";
#endif

std::vector<fs::path> library_folders(const fs::path& prefix) {
  return {prefix / "lib" / kMultiarch, prefix / "lib64", prefix / "lib"};
}

fs::path command_folder() {
  std::error_code error;
  fs::path file = fs::read_symlink("/proc/self/exe", error);
  if (file.empty()) file = fs::canonical(reinterpret_cast<const char*>(::getauxval(AT_EXECFN)), error);  // no /proc
  return file.parent_path();
}

bool is_readable_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && ::access(path.c_str(), R_OK) == 0;
}

// The absolute path of a library that LD_PRELOAD can name.
std::string checked(const fs::path& path) {
  if (!is_readable_file(path)) {
    throw Failure(kExitRefused, fmt::format("no readable library at {}", printable(path.string())));
  }
  std::string absolute = fs::canonical(path).string();
  if (absolute.find_first_of(" :") != std::string::npos) {
    throw Failure(kExitRefused, fmt::format("LD_PRELOAD cannot name {}: its path has a space or a colon; copy it elsewhere",
                                            printable(absolute)));
  }
  return absolute;
}

// "libjemalloc.so.2" -> "jemalloc"
std::string short_name(const fs::path& path) {
  std::string name = path.filename().string();
  name.erase(std::min(name.find(".so"), name.size()));
  return name.starts_with("lib") ? name.substr(3) : name;
}

std::string find_peer(const Peer& peer) {
  for (const char* prefix : {"/usr", "/usr/local", "/"}) {
    for (const fs::path& folder : library_folders(prefix)) {
      if (is_readable_file(folder / peer.file)) return checked(folder / peer.file);
    }
  }
  throw Failure(kExitRefused, fmt::format("{} is not installed: {} not found; apt install {}, or give its path", peer.name,
                                          peer.file, peer.package));
}

}  // namespace

std::vector<fs::path> freehold_candidates(const fs::path& command_folder) {
  const fs::path prefix = command_folder.parent_path();
  std::vector<fs::path> folders = library_folders(prefix);
  folders.insert(folders.begin(), prefix);
  std::vector<fs::path> candidates;
  for (const fs::path& folder : folders) {
    // libfreehold.so alone is for the linker: a distribution may have it in another package.
    for (const std::string_view name : {std::string_view(FREEHOLD_SONAME), kLibrary}) candidates.push_back(folder / name);
  }
  return candidates;
}

std::string find_freehold_library() {
  if (const char* chosen = std::getenv("FREEHOLD_LIBRARY"); chosen != nullptr && *chosen != '\0') {
    if (!is_readable_file(chosen)) {
      throw Failure(kExitRefused, fmt::format("FREEHOLD_LIBRARY names no readable library: {}", printable(chosen)));
    }
    return checked(chosen);
  }
  if (const auto copy = carried_file(FREEHOLD_SONAME)) return checked(*copy);
  const fs::path folder = command_folder();
  for (const fs::path& candidate : freehold_candidates(folder)) {
    if (is_readable_file(candidate)) return checked(candidate);
  }
  throw Failure(kExitRefused,
                fmt::format("{} not found near {}; set FREEHOLD_LIBRARY to its path", kLibrary, printable(folder.string())));
}

std::string find_own_library(const std::string& name) {
  if (const auto copy = carried_file(name)) return checked(*copy);
  const fs::path folder = command_folder();
  for (const fs::path& candidate : freehold_candidates(folder)) {
    // Installed, the command's own libraries lie apart from those to link.
    for (const fs::path& path : {candidate.parent_path() / "freehold" / name, candidate.parent_path() / name}) {
      if (is_readable_file(path)) return checked(path);
    }
  }
  throw Failure(kExitRefused, fmt::format("{} not found near {}", name, printable(folder.string())));
}

std::string find_own_program(const std::string& name) {
  if (auto copy = carried_file(name)) return *std::move(copy);
  const fs::path folder = command_folder();
  for (const fs::path& path : {folder / name, folder.parent_path() / "libexec" / "freehold" / name}) {
    if (is_readable_file(path) && ::access(path.c_str(), X_OK) == 0) return path;
  }
  throw Failure(kExitRefused, fmt::format("{} not found near {}", name, printable(folder.string())));
}

Allocator find_allocator(const std::string& text) {
  if (text == "system") return {text, ""};
  if (text == "freehold") return {text, find_freehold_library()};
  const auto peer = std::ranges::find(kPeers, text, &Peer::name);
  if (peer != kPeers.end()) return {text, find_peer(*peer)};
  if (const auto equals = text.find('='); equals != std::string::npos && equals > 0) {
    return {text.substr(0, equals), checked(text.substr(equals + 1))};
  }
  if (text.find('/') != std::string::npos) return {short_name(text), checked(text)};
  throw Failure(kExitRefused, fmt::format("unknown allocator '{}': system, freehold, {} or a path with a '/'",
                                          printable(text), fmt::join(known_peers(), ", ")));
}

std::vector<std::string> known_peers() {
  std::vector<std::string> names;
  for (const Peer& peer : kPeers) names.emplace_back(peer.name);
  return names;
}

std::string preload_value(const std::string& library, const char* existing) {
  if (existing == nullptr || *existing == '\0') return library;
  return library + ':' + existing;
}

void note_malloc_library(std::span<char> name) {
  Dl_info info{};
  void* const symbol = ::dlsym(RTLD_DEFAULT, "malloc");
  if (symbol != nullptr && ::dladdr(symbol, &info) != 0 && info.dli_fname != nullptr) {
    std::strncpy(name.data(), info.dli_fname, name.size() - 1);
  }
}

std::string wrong_malloc(const std::string& library, const std::string& actual) {
  std::error_code error;
  const fs::path from = fs::weakly_canonical(actual, error);
  if (library.empty() ? from.filename().string().starts_with("libc.so") : from == library) return {};
  if (library.empty()) return fmt::format("malloc is not the system's: it comes from {}", printable(from.string()));
  return fmt::format("{} does not replace malloc, which comes from {}", printable(library), printable(from.string()));
}

}  // namespace freehold::inline tools
