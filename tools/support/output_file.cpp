// SPDX-License-Identifier: MIT
#include "tools/support/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <map>
#include <random>
#include <string>

#include "tools/support/failure.hpp"

namespace freehold::inline tools {
namespace {

[[noreturn]] void refuse(const std::string& path, int error_number) {
  throw Failure(kExitRefused, fmt::format("cannot write {}: {}", printable(path), error_text(error_number)));
}

// The text goes to a name in a folder that is open, so that another user cannot exchange what leads there.
struct Place {
  FileDescriptor folder;
  std::string name;
  bool others_may_write = false;  // to the folder
  bool exists = false;
  int descriptor = -1;  // the name is one of this process's in /proc: what is open, which the shell may have opened
  struct stat info{};

  [[nodiscard]] bool is_regular() const { return descriptor < 0 && (!exists || S_ISREG(info.st_mode)); }
  // A file, pipe or device that another user may have put here.
  [[nodiscard]] bool may_be_planted() const {
    return others_may_write && exists && info.st_uid != ::geteuid() && info.st_uid != 0;
  }
};

bool others_may_write(int folder) {
  struct stat info{};
  if (::fstat(folder, &info) != 0) return true;
  return (info.st_mode & (S_IWGRP | S_IWOTH)) != 0 || (info.st_uid != ::geteuid() && info.st_uid != 0);
}

// The link that `name` is; who else may write to the folder can exchange it, but not what is open here. Throws Failure if
// another user may have planted it.
std::string target_of_link(const Place& place, const std::string& path) {
  const FileDescriptor link(::openat(place.folder.get(), place.name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat info{};
  char target[PATH_MAX];
  const ssize_t length = link ? ::readlinkat(link.get(), "", target, sizeof target) : -1;
  if (length < 0 || ::fstat(link.get(), &info) != 0) refuse(path, errno);
  if (place.others_may_write && ((info.st_uid != ::geteuid() && info.st_uid != 0) || info.st_nlink > 1))
    throw Failure(kExitRefused,
                  fmt::format("cannot write {}: it is a symbolic link of another user's, in a folder that others may write "
                              "to; name the file that it leads to",
                              printable(path)));
  return {target, static_cast<std::size_t>(length)};
}

// N of /proc/self/fd/N, to which /dev/stdout and /dev/fd lead; -1: the place is another one. Throws Failure if N is not
// open.
int descriptor_at(const Place& place, const std::string& path) {
  struct stat folder{}, own{};
  if (::fstat(place.folder.get(), &folder) != 0 || ::stat("/proc/self/fd", &own) != 0) return -1;
  if (folder.st_dev != own.st_dev || folder.st_ino != own.st_ino) return -1;
  int number = -1;
  const char* const end = place.name.data() + place.name.size();
  if (std::from_chars(place.name.data(), end, number).ptr != end || ::fcntl(number, F_GETFD) < 0) refuse(path, EBADF);
  return number;
}

// Follows symbolic links, which stay, but none that another user may have planted. Throws Failure.
Place place_of(const std::string& path) {
  constexpr int kMostLinks = 40;  // the kernel's own limit
  std::filesystem::path at = path;
  for (int links = 0; links < kMostLinks; ++links) {
    Place place;
    place.name = at.filename().string();
    const std::filesystem::path parent = at.has_parent_path() ? at.parent_path() : ".";
    place.folder = FileDescriptor(::open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!place.folder) refuse(path, errno);
    if (place.name.empty()) refuse(path, EISDIR);
    place.others_may_write = others_may_write(place.folder.get());
    place.descriptor = descriptor_at(place, path);
    if (place.descriptor >= 0) return place;
    place.exists = ::fstatat(place.folder.get(), place.name.c_str(), &place.info, AT_SYMLINK_NOFOLLOW) == 0;
    if (!place.exists && errno != ENOENT) refuse(path, errno);
    if (place.exists && S_ISDIR(place.info.st_mode)) refuse(path, EISDIR);
    if (!place.exists || !S_ISLNK(place.info.st_mode)) return place;
    at = parent / target_of_link(place, path);
  }
  refuse(path, ELOOP);
}

void refuse_planted(const Place& place, const std::string& path) {
  if (place.may_be_planted())
    throw Failure(kExitRefused, fmt::format("cannot write {}: it belongs to user {}, in a folder that others may write to; "
                                            "name another file",
                                            printable(path), place.info.st_uid));
}

// In a sticky folder only root and the owners of the file and of the folder can put another file in its place.
bool is_held_by_another(const Place& place) {
  struct stat folder{};
  const uid_t user = ::geteuid();
  return place.exists && user != 0 && place.info.st_uid != user && ::fstat(place.folder.get(), &folder) == 0 &&
         (folder.st_mode & S_ISVTX) != 0 && folder.st_uid != user;
}

// For check_different().
std::string target_of(const std::string& path) {
  std::error_code error;
  const auto target = std::filesystem::weakly_canonical(path, error);
  return error ? path : target.string();
}

mode_t mode_of_new_file() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return static_cast<mode_t>(0666) & ~mask;
}

void write_directly(const Place& place, const std::string& path, std::string_view text) {
  if (place.descriptor >= 0) {  // writes where it stands, and at its end if it was opened so
    if (const int error = write_all(place.descriptor, text); error != 0) refuse(path, error);
    return;
  }
  refuse_planted(place, path);
  FileDescriptor file(::openat(place.folder.get(), place.name.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info{};
  if (!file || ::fstat(file.get(), &info) != 0) refuse(path, errno);
  if (info.st_dev != place.info.st_dev || info.st_ino != place.info.st_ino)
    refuse(path, EPERM);  // exchanged since we looked
  if (const int error = write_all(file.get(), text); error != 0) refuse(path, error);
  if (file.close() != 0) refuse(path, errno);
}

// A new file beside the target. Its name goes to `name`.
FileDescriptor create_beside(const Place& place, std::string& name) {
  FileDescriptor file;
  for (unsigned tries = 0; !file && tries < 100; ++tries) {
    name = fmt::format("{}.{:06x}", place.name, std::random_device()() & 0xffffffU);
    file = FileDescriptor(
        ::openat(place.folder.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file && errno != EEXIST) break;
  }
  return file;
}

// An existing file keeps its rights, unless another user has chosen them.
mode_t mode_of(const Place& place) {
  constexpr mode_t kRights = 0777;
  return place.exists && !place.may_be_planted() ? place.info.st_mode & kRights : mode_of_new_file();
}

bool g_output_was_closed = false;  // and is /dev/null now

}  // namespace

int write_all(int fd, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

void check_writable(const std::string& path) {
  if (path.empty()) throw Failure(kExitRefused, "the output file's name is empty");
  if (path == "-") throw Failure(kExitRefused, "- is standard output, but this option needs a file: name one, or use ./-");
  const Place place = place_of(path);
  const int folder = place.folder.get();
  if (place.descriptor >= 0) {
    if ((::fcntl(place.descriptor, F_GETFL) & O_ACCMODE) == O_RDONLY) refuse(path, EBADF);
  } else if (!place.is_regular()) {
    refuse_planted(place, path);
    if (::faccessat(folder, place.name.c_str(), W_OK, 0) != 0) refuse(path, errno);
  } else if (::faccessat(folder, ".", W_OK | X_OK, 0) != 0) {
    refuse(path, errno);
  } else if (is_held_by_another(place)) {
    refuse(path, EPERM);
  }
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
  const Place place = place_of(path);
  if (!place.is_regular()) return write_directly(place, path, text);
  const int folder = place.folder.get();
  std::string temporary;
  FileDescriptor file = create_beside(place, temporary);
  if (!file) refuse(path, errno);
  int error = write_all(file.get(), text);
  if (error == 0 && ::fchmod(file.get(), mode_of(place)) != 0) error = errno;
  // Delayed allocation reports a full disk only here; without it a crash could leave the new name with no content.
  if (error == 0 && ::fsync(file.get()) != 0) error = errno;
  if (file.close() != 0 && error == 0) error = errno;
  if (error == 0 && ::renameat(folder, temporary.c_str(), folder, place.name.c_str()) != 0) error = errno;
  if (error != 0) {
    ::unlinkat(folder, temporary.c_str(), 0);
    refuse(path, error);
  }
}

FileDescriptor open_log(const std::string& path) {
  const Place place = place_of(path);
  refuse_planted(place, path);
  const int flags = O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | (place.descriptor >= 0 ? 0 : O_NOFOLLOW);
  FileDescriptor file(::openat(place.folder.get(), place.name.c_str(), flags, 0666));
  struct stat info{};
  if (!file || ::fstat(file.get(), &info) != 0) refuse(path, errno);
  // Another name of a file elsewhere, which another user has made.
  if (place.others_may_write && S_ISREG(info.st_mode) && info.st_nlink > 1)
    throw Failure(kExitRefused, fmt::format("cannot write {}: it has other names, in a folder that others may write to; "
                                            "name another file",
                                            printable(path)));
  return file;
}

void print_to_stdout(const std::string& text) {
  if (g_output_was_closed)
    throw Failure(kExitRefused, fmt::format("cannot write to standard output: {}", error_text(EBADF)));
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) {
    throw Failure(kExitRefused, fmt::format("cannot write to standard output: {}", error_text(errno)));
  }
}

void check_report(const std::optional<std::string>& file) {
  if (file && *file != "-") check_writable(*file);
}

void write_each(std::initializer_list<std::function<void()>> outputs) {
  std::exception_ptr first;
  for (const auto& write : outputs) {
    try {
      write();
    } catch (const Failure&) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

void write_report(const std::optional<std::string>& file, const std::string& json, const std::string& text,
                  const std::string& beside) {
  const bool to_stdout = file == "-";
  if (to_stdout) say(beside);
  write_each({[&] {
                if (file && !to_stdout) write_file(*file, json);
              },
              [&] { print_to_stdout(to_stdout ? json : text); }});
}

void open_standard_files() {
  while (true) {
    const int fd = ::open("/dev/null", O_RDWR);
    g_output_was_closed = g_output_was_closed || fd == STDOUT_FILENO;
    if (fd > STDERR_FILENO || fd < 0) {
      ::close(fd);
      return;
    }
  }
}

TemporaryFolder::TemporaryFolder(std::string_view purpose) {
  std::error_code error;
  std::filesystem::path base = std::filesystem::temp_directory_path(error);
  if (error) base = "/tmp";
  std::string pattern = base / fmt::format("freehold-{}-XXXXXX", purpose);
  if (::mkdtemp(pattern.data()) == nullptr)
    throw Failure(kExitRefused, fmt::format("cannot make a folder in {}: {}", printable(base.string()), error_text(errno)));
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace freehold::inline tools
