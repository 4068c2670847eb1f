// SPDX-License-Identifier: MIT
#include "cli/support/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "cli/support/failure.hpp"
#include "cli/support/file_descriptor.hpp"

namespace freehold::cli {
namespace {

[[noreturn]] void refuse(const std::string& path, int error_number) {
  throw Failure(kExitRefused, fmt::format("cannot write {}: {}", printable(path), error_text(error_number)));
}

// Where a rename has to put the file: behind symbolic links, which stay.
std::string target_of(const std::string& path) {
  std::error_code error;
  const auto target = std::filesystem::weakly_canonical(path, error);
  return error ? path : target.string();
}

std::string folder_of(const std::string& target) {
  const auto folder = std::filesystem::path(target).parent_path();
  return folder.empty() ? "." : folder.string();
}

mode_t mode_of_new_file() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return static_cast<mode_t>(0666) & ~mask;
}

// 0, or the errno of the write that failed.
int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

void write_directly(const std::string& path, std::string_view text) {
  FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file) refuse(path, errno);
  if (const int error = write_all(file.get(), text); error != 0) refuse(path, error);
  if (file.close() != 0) refuse(path, errno);
}

}  // namespace

void check_writable(const std::string& path) {
  if (path.empty()) throw Failure(kExitRefused, "the output file's name is empty");
  if (path == "-") throw Failure(kExitRefused, "- is standard output, but this option needs a file: name one, or use ./-");
  struct stat info{};
  if (::stat(path.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) refuse(path, EISDIR);
    if (!S_ISREG(info.st_mode)) {
      if (::access(path.c_str(), W_OK) != 0) refuse(path, errno);
      return;
    }
  }
  if (::access(folder_of(target_of(path)).c_str(), W_OK | X_OK) != 0) refuse(path, errno);
}

void check_different(const std::vector<std::pair<std::string, std::string>>& outputs) {
  std::map<std::string, std::string> options;  // by what is written
  for (const auto& [option, path] : outputs) {
    struct stat info{};
    if (path == "-" || (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode))) continue;
    const auto [known, is_new] = options.try_emplace(target_of(std::filesystem::absolute(path).string()), option);
    if (!is_new)
      throw Failure(kExitRefused,
                    fmt::format("{} and {} would both write {}: name two files", known->second, option, printable(path)));
  }
}

void write_file(const std::string& path, std::string_view text) {
  struct stat info{};
  const bool exists = ::stat(path.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) refuse(path, EISDIR);
  if (exists && !S_ISREG(info.st_mode)) return write_directly(path, text);

  const std::string target = target_of(path);
  std::string temporary = target + ".XXXXXX";
  FileDescriptor file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!file) refuse(path, errno);
  int error = write_all(file.get(), text);
  if (error == 0 && ::fchmod(file.get(), exists ? info.st_mode & 07777 : mode_of_new_file()) != 0) error = errno;
  // Delayed allocation reports a full disk only here; without it a crash could leave the new name with no content.
  if (error == 0 && ::fsync(file.get()) != 0) error = errno;
  if (file.close() != 0 && error == 0) error = errno;
  if (error == 0 && ::rename(temporary.c_str(), target.c_str()) != 0) error = errno;
  if (error != 0) {
    ::unlink(temporary.c_str());
    refuse(path, error);
  }
}

}  // namespace freehold::cli
