// SPDX-License-Identifier: MIT
// The static command carries its shared libraries and its example inside. The dynamic linker takes them from files alone, so
// the first that is asked for makes a folder for this user, named by the content: freehold-UID-HASH in XDG_RUNTIME_DIR, in
// TMPDIR or in /tmp. It has the mode 0700; a folder or a file of somebody else, or with other content, is never used. The
// copies stay for the next time.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace freehold::inline tools {

struct CarriedFile {
  std::string_view name;
  std::string_view content;
};

// Says what this command carries. For main(), before all else; `files` stays.
void carry(std::span<const CarriedFile> files) noexcept;
// The path of a copy of the file; nothing if this command does not carry it. Throws Failure(kExitRefused) if there is no
// place for it.
[[nodiscard]] std::optional<std::string> carried_file(std::string_view name);
// Makes all copies, so that a full disk is reported before any work. Throws Failure(kExitRefused).
void copy_carried_files();

}  // namespace freehold::inline tools
