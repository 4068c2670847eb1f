// SPDX-License-Identifier: MIT
#include "tools/support/carried.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <vector>

#include "tools/support/failure.hpp"
#include "tools/support/file_descriptor.hpp"
#include "tools/support/output_file.hpp"

namespace freehold::inline tools {
namespace {

std::span<const CarriedFile> g_files;

// FNV-1a, 64 bits. It only tells versions apart: what is used is compared byte for byte.
std::uint64_t fingerprint() {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const CarriedFile& file : g_files) {
    for (const std::string_view text : {file.name, file.content}) {
      for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
    }
  }
  return hash;
}

std::vector<std::string> places() {
  std::vector<std::string> found;
  for (const char* const variable : {"XDG_RUNTIME_DIR", "TMPDIR"}) {
    if (const char* const value = std::getenv(variable); value != nullptr && *value == '/') found.emplace_back(value);
  }
  const char* const chosen = std::getenv("TMPDIR");
  if (chosen == nullptr || *chosen == '\0') found.emplace_back("/tmp");
  return found;
}

Failure failed(const std::string& what, int error) {
  return {kExitRefused, fmt::format("{}: {}", printable(what), error_text(error))};
}
Failure refused(const std::string& path, const char* why) {
  return {kExitRefused, fmt::format("{} {}", printable(path), why)};
}

// Root's files belong to this user in a user namespace that has no root.
constexpr uid_t kNobody = 65534;

// Others could put another folder in ours' place: the owner of the place, and those who may write where no sticky bit holds
// them back.
void check_place(const std::string& place) {
  struct stat info{};
  if (::stat(place.c_str(), &info) != 0) throw failed(place, errno);
  if ((info.st_mode & (S_IWOTH | S_IWGRP)) != 0 && (info.st_mode & S_ISVTX) == 0)
    throw refused(place, "may be changed by others");
  if (info.st_uid != ::geteuid() && info.st_uid != 0 && info.st_uid != kNobody)
    throw refused(place, "belongs to another user");
  struct statvfs mounted{};
  if (::statvfs(place.c_str(), &mounted) != 0) throw failed(place, errno);
  if ((mounted.f_flag & ST_NOEXEC) != 0) throw refused(place, "is mounted noexec");
}

FileDescriptor open_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) throw failed(path, errno);
  FileDescriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder) throw failed(path, errno);
  struct stat info{};
  if (::fstat(folder.get(), &info) != 0) throw failed(path, errno);
  if (info.st_uid != ::geteuid() || (info.st_mode & 077) != 0) throw refused(path, "is not this user's alone");
  return folder;
}

bool has_content(int folder, const std::string& name, std::string_view content) {
  const FileDescriptor file(::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  struct stat info{};
  if (!file || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != ::geteuid() ||
      (info.st_mode & 022) != 0 || info.st_size != static_cast<off_t>(content.size()))
    return false;
  char piece[1 << 14];
  while (!content.empty()) {
    const ssize_t length = ::read(file.get(), piece, std::min(sizeof piece, content.size()));
    if (length <= 0 || !content.starts_with(std::string_view(piece, static_cast<std::size_t>(length)))) return false;
    content.remove_prefix(static_cast<std::size_t>(length));
  }
  return true;
}

// Under another name first: a second command may be at it, too.
void write_copy(int folder, const std::string& path, const CarriedFile& file) {
  // Containers that share the folder may have processes of the same id.
  const std::string part = fmt::format(".{}.{}.{:08x}", file.name, ::getpid(), std::random_device()());
  FileDescriptor copy(::openat(folder, part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0500));
  if (!copy) throw failed(path, errno);
  int error = write_all(copy.get(), file.content);
  if (copy.close() != 0 && error == 0) error = errno;
  if (error == 0 && ::renameat(folder, part.c_str(), folder, std::string(file.name).c_str()) != 0) error = errno;
  if (error == 0) return;
  ::unlinkat(folder, part.c_str(), 0);
  throw failed(path, error);
}

std::string copy_in(const std::string& place, const CarriedFile& file) {
  check_place(place);
  const std::string path = fmt::format("{}/freehold-{}-{:016x}", place, ::geteuid(), fingerprint());
  const FileDescriptor folder = open_folder(path);
  const std::string name(file.name);
  std::string copy = path + '/' + name;
  if (!has_content(folder.get(), name, file.content)) write_copy(folder.get(), copy, file);
  return copy;
}

std::string copy_of(const CarriedFile& file) {
  std::string why;
  for (const std::string& place : places()) {
    try {
      return copy_in(place, file);
    } catch (const Failure& failure) {
      why += (why.empty() ? "" : "; ") + std::string(failure.what());
    }
  }
  throw Failure(kExitRefused, fmt::format("no place for the libraries that this command carries: {}: set TMPDIR to a folder "
                                          "of yours where files may be executed",
                                          why.empty() ? "TMPDIR is not an absolute path" : why));
}

}  // namespace

void carry(std::span<const CarriedFile> files) noexcept { g_files = files; }

std::optional<std::string> carried_file(std::string_view name) {
  const auto found = std::ranges::find(g_files, name, &CarriedFile::name);
  if (found == g_files.end()) return std::nullopt;
  return copy_of(*found);
}

void copy_carried_files() {
  for (const CarriedFile& file : g_files) static_cast<void>(copy_of(file));
}

}  // namespace freehold::inline tools
