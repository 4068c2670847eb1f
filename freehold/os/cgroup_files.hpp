// SPDX-License-Identifier: MIT
// The small files of control groups: where the groups of this process are, and what stands in them. No allocation: for the
// first malloc. Cost: a few system calls for each file.
#pragma once
#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace freehold::os {

// A small file's text in a fixed buffer; stdio may allocate. Empty if it cannot be read. /proc/self/cgroup has a line for
// each of a dozen hierarchies of version 1, each with a path of up to 150 characters under Kubernetes.
struct SmallFile {
  char text[4096];

  explicit SmallFile(const char* path) noexcept {
    const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
    read_from(fd);
    if (fd >= 0) ::close(fd);
  }
  // From its start, whatever was read before.
  explicit SmallFile(int fd) noexcept { read_from(fd); }

 private:
  void read_from(int fd) noexcept {
    std::size_t n = 0;
    for (ssize_t got = fd < 0 ? 0 : 1; got > 0 && n < sizeof text - 1; n += got > 0 ? static_cast<std::size_t>(got) : 0)
      got = ::pread(fd, text + n, sizeof text - 1 - n, static_cast<off_t>(n));
    text[n] = '\0';
  }
};

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
  // Cuts the last component off; false if there is none below `root_length`.
  bool up(std::size_t root_length) noexcept {
    while (length_ > root_length && text_[length_ - 1] != '/') --length_;
    if (length_ <= root_length) return false;
    text_[--length_] = '\0';
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

// The number that a file of the folder begins with, or that follows `key` at the beginning of a line. False: there is none.
inline bool number_in(const char* text, const char* key, std::uint64_t& out) noexcept {
  const std::size_t length = std::strlen(key);
  for (const char* line = text; line != nullptr && *line != '\0';) {
    if (std::strncmp(line, key, length) == 0) {
      line += length;
      return read_number(line, out);
    }
    line = std::strchr(line, '\n');
    if (line != nullptr) ++line;
  }
  return false;
}
inline bool number_in_file(const char* folder, const char* file, std::uint64_t& out) noexcept {
  Path path(folder);
  const SmallFile content(path.add(file).text());
  const char* s = content.text;
  return read_number(s, out);
}

// Whether the comma-separated list has the word.
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
// exist: inside a container the own group is mounted as the root.
template <class Visit>
void for_each_cgroup(const char* root, const char* self, const char* controller, Visit visit) noexcept {
  const SmallFile groups(self);
  for (const char* line = groups.text; *line != '\0';) {
    const char* end = std::strchr(line, '\n');
    if (end == nullptr) end = line + std::strlen(line);
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
        do visit(folder.text(), length == 0);
        while (folder.up(root_length));
      }
    }
    line = *end == '\0' ? end : end + 1;
  }
}

}  // namespace freehold::os
