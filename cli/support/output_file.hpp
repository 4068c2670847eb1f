// SPDX-License-Identifier: MIT
// Writes output files that are never half-written. The text goes to a new file beside the target, is flushed to the disk,
// and then takes the target's name by a rename. A target that is not a regular file (/dev/stdout, a pipe) is written
// directly.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace freehold::cli {

// Throws Failure(kExitRefused) if `path` certainly cannot be written. Call it before minutes of work are spent.
void check_writable(const std::string& path);
// Throws Failure(kExitRefused) if two options are to write the same file. `outputs`: the option and its file; "-" and what
// is no regular file (a pipe, a terminal) may be written to twice.
void check_different(const std::vector<std::pair<std::string, std::string>>& outputs);
// Replaces the content of `path`. A symbolic link stays one; an existing file keeps its permissions.
// Throws Failure(kExitRefused); then an existing file is as it was and no temporary file is left.
void write_file(const std::string& path, std::string_view text);

}  // namespace freehold::cli
