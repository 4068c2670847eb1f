// SPDX-License-Identifier: MIT
// The small files of control groups: where the groups of this process are, and what stands in them. No allocation: for the
// first malloc. Cost: a few system calls for each file.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "freehold/os/file_lines.hpp"

namespace freehold::os {

class Path {
 public:
  static constexpr std::size_t kMostBytes = 512;

  constexpr Path() noexcept = default;
  explicit Path(const char* s) noexcept { add(s); }
  Path& add(const char* s, std::size_t n) noexcept {
    if (length_ + n < sizeof text_) {
      std::memcpy(text_ + length_, s, n);
      length_ += n;
    }
    text_[length_] = '\0';
    return *this;
  }
  Path& add(const char* s) noexcept { return add(s, std::strlen(s)); }
  void cut(std::size_t length) noexcept { text_[length_ = length] = '\0'; }
  // Cuts the last component off; false if no component is left below `root_length`.
  bool up(std::size_t root_length) noexcept {
    while (length_ > root_length && text_[length_ - 1] != '/') --length_;
    if (length_ <= root_length) return false;
    cut(length_ - 1);
    return true;
  }
  [[nodiscard]] const char* text() const noexcept { return text_; }
  [[nodiscard]] std::size_t length() const noexcept { return length_; }

 private:
  char text_[kMostBytes]{};
  std::size_t length_ = 0;
};

// Reads a number and moves on behind it.
inline bool read_number(const char*& s, std::uint64_t& out) noexcept {
  while (*s == ' ') ++s;
  if (*s < '0' || *s > '9') return false;
  for (out = 0; *s >= '0' && *s <= '9'; ++s) out = out * 10 + static_cast<std::uint64_t>(*s - '0');
  return true;
}

// Files of which a line's beginning says all.
using NumberLines = FileLines<64, 256>;

// The number that follows `key` at the beginning of a line, of which the first counts; "": that the file begins with. False:
// none exists. The path is as it was afterwards: on a small stack there is room for one.
inline bool number_in_file(Path& folder, const char* file, std::uint64_t& out, const char* key = "") noexcept {
  const std::size_t folder_length = folder.length(), key_length = std::strlen(key);
  NumberLines lines(folder.add(file).text());
  folder.cut(folder_length);
  while (const char* line = lines.next())
    if (std::strncmp(line, key, key_length) == 0) return read_number(line += key_length, out);
  return false;
}

// Returns whether the comma-separated list has the word.
inline bool is_in_list(const char* list, std::size_t length, const char* word) noexcept {
  const char* const end = list + length;
  const std::size_t word_length = std::strlen(word);
  while (list < end) {
    const auto* comma = static_cast<const char*>(std::memchr(list, ',', static_cast<std::size_t>(end - list)));
    const char* const stop = comma == nullptr ? end : comma;
    if (static_cast<std::size_t>(stop - list) == word_length && std::memcmp(list, word, word_length) == 0) return true;
    list = stop + 1;
  }
  return false;
}

// Calls visit(folder, whether it is of version 2) for the group of the process that `controller` limits and for each of its
// ancestors, in files below `root` ("/sys/fs/cgroup") for the paths of `self` ("/proc/self/cgroup"). Some folders may not
// exist: inside a container the own group is mounted as the root. `visit` gets a Path&, and leaves it as it was.
template <class Visit>
void for_each_cgroup(const char* root, const char* self, const char* controller, Visit visit) noexcept {
  // Each of a dozen hierarchies of version 1 has a line, with a path of up to 150 characters under Kubernetes.
  for (FileLines<Path::kMostBytes + 128, 256> lines(self); const char* const line = lines.next();) {
    const char* const end = line + std::strlen(line);
    // hierarchy:controllers:path
    const auto colon = [end](const char* from) {
      return from == nullptr ? nullptr
                             : static_cast<const char*>(std::memchr(from, ':', static_cast<std::size_t>(end - from)));
    };
    const char* const controllers = colon(line);
    const char* const path = colon(controllers == nullptr ? nullptr : controllers + 1);
    if (path != nullptr) {
      const auto length = static_cast<std::size_t>(path - controllers - 1);
      const auto path_length = static_cast<std::size_t>(end - path - 1);
      if (length == 0 || is_in_list(controllers + 1, length, controller)) {
        Path folder(root);
        if (length != 0) folder.add("/").add(controller);
        const std::size_t root_length = folder.length();
        if (path_length > 1) folder.add(path + 1, path_length);
        do visit(folder, length == 0);
        while (folder.up(root_length));
      }
    }
  }
}

}  // namespace freehold::os
