// SPDX-License-Identifier: MIT
#include "cli/support/temporary_folder.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "cli/support/failure.hpp"

namespace freehold::cli {

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

}  // namespace freehold::cli
