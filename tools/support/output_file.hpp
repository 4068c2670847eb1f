// SPDX-License-Identifier: MIT
// Opens every file that the command writes. Results are never half-written: the text goes to a new file beside the target,
// is flushed to the disk, and then takes the target's name by a rename. A target that is not a regular file (a pipe), and
// what is open already (/dev/stdout, /dev/fd/N), is written directly.
//
// Root may write results into a folder to which others may write, too. The command refuses what they may have planted
// there: a symbolic link, a pipe or a device of theirs, another name of a file elsewhere. The user's own links are followed
// and stay.
#pragma once
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/support/file_descriptor.hpp"

namespace freehold::inline tools {

// Returns 0, or the errno of the write that failed.
int write_all(int fd, std::string_view text) noexcept;
// Throws Failure(kExitRefused) if `path` certainly cannot be written. Call it before minutes of work are spent.
void check_writable(const std::string& path);
// Throws Failure(kExitRefused) if two options are to write the same file. `outputs`: the option and its file; "-" and what
// is no regular file (a pipe, a terminal) may be written to twice.
void check_different(const std::vector<std::pair<std::string, std::string>>& outputs);
// Replaces the content of `path`. An existing file keeps its permissions.
// Throws Failure(kExitRefused); then an existing file is as it was and no temporary file is left.
void write_file(const std::string& path, std::string_view text);
// Opens a file to read what is there and to add to it; makes it if it is not there. Throws Failure(kExitRefused).
[[nodiscard]] FileDescriptor open_log(const std::string& path);

// Standard input, output and error, even if the caller closed them.

// Opens descriptors 0 to 2 on /dev/null if they are closed, so that no pipe gets their numbers: workers redirect them.
void open_standard_files();
// Throws Failure(kExitRefused) if not everything could be written.
void print_to_stdout(const std::string& text);

// The option --json: a file, "-" for standard output, or none.

// As check_writable(), of the file.
void check_report(const std::optional<std::string>& file);
// Calls each, which writes one output, even if another cannot be written; then throws the first Failure.
void write_each(std::initializer_list<std::function<void()>> outputs);
// The JSON goes to its file and then the text to standard output, even if the JSON cannot be written. With "-" the JSON goes
// there, and `beside`, the text for a person who waits, to standard error.
void write_report(const std::optional<std::string>& file, const std::string& json, const std::string& text,
                  const std::string& beside = {});

// A new folder for files of this command alone (0700); it and what is in it are removed at the end. Not by SIGKILL.
class TemporaryFolder {
 public:
  // freehold-PURPOSE-......, in TMPDIR or /tmp. Throws Failure with one line if it cannot be made.
  explicit TemporaryFolder(std::string_view purpose);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace freehold::inline tools
