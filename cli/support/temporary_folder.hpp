// SPDX-License-Identifier: MIT
// A new folder for files of this command alone (0700); it and what is in it are removed at the end. Not by SIGKILL.
#pragma once
#include <filesystem>
#include <string_view>

namespace freehold::cli {

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

}  // namespace freehold::cli
