// SPDX-License-Identifier: MIT
// Opens every file that the command writes. Results are never half-written: the text goes to a new file beside the target,
// is flushed to the disk, and then takes the target's name by a rename. A target that is not a regular file (a pipe), and
// what is open already (/dev/stdout, /dev/fd/N), is written directly.
//
// Root may write results into a folder to which others may write, too. The command refuses what they may have planted
// there: a symbolic link, a pipe or a device of theirs, another name of a file elsewhere. The user's own links are followed
// and stay.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/support/file_descriptor.hpp"

namespace freehold::cli {

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

}  // namespace freehold::cli
