// SPDX-License-Identifier: MIT
#include "freehold/os/modules.hpp"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "freehold/base/bits.hpp"
#include "freehold/base/keep_errno.hpp"
#include "freehold/os/file_lines.hpp"
#include "freehold/os/pages.hpp"
#include "freehold/os/process_memory.hpp"
#include "freehold/os/system_call.hpp"

namespace freehold::os {
namespace {

// A line of /proc/self/maps: "start-end perms offset device inode   path".
struct Mapping {
  std::uintptr_t start = 0, end = 0, offset = 0;
  std::uint64_t device = 0, inode = 0;
  bool is_readable = false, is_writable = false;
  const char* path = nullptr;
};

std::uint64_t read_number(const char*& at, unsigned radix) noexcept {
  std::uint64_t value = 0;
  for (;; ++at) {
    const unsigned digit = *at >= '0' && *at <= '9'   ? static_cast<unsigned>(*at - '0')
                           : *at >= 'a' && *at <= 'f' ? static_cast<unsigned>(*at - 'a' + 10)
                                                      : 99;
    if (digit >= radix) return value;
    value = value * radix + digit;
  }
}

Mapping parse(const char* line) noexcept {
  Mapping m;
  m.start = read_number(line, 16);
  m.end = read_number(++line, 16);
  m.is_readable = line[1] == 'r';
  m.is_writable = line[2] == 'w';
  line += std::strlen(" rwxp ");
  m.offset = read_number(line, 16);
  m.device = read_number(++line, 16) << 32;
  m.device |= read_number(++line, 16);
  m.inode = read_number(++line, 10);
  while (*line == ' ') ++line;
  m.path = line;
  return m;
}

// Returns what must be added to the addresses in the file whose beginning is mapped at `start`. The file's headers say at
// which address it begins: 0 for libraries, another for programs that are not position-independent.
[[nodiscard]] std::uintptr_t load_bias(std::uintptr_t start) noexcept {
  ElfW(Ehdr) head;
  if (!read_process_memory(kernel::getpid(), start, &head, sizeof head) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
    return start;
  for (unsigned i = 0; i < head.e_phnum; ++i) {
    ElfW(Phdr) part;
    if (!read_process_memory(kernel::getpid(), start + head.e_phoff + i * sizeof part, &part, sizeof part)) break;
    if (part.p_type == PT_LOAD) return start - base::align_down(part.p_vaddr, page_bytes());
  }
  return start;
}

using Lines = FileLines<640, 1024>;

[[nodiscard]] bool search(std::uintptr_t wanted, Module& module) noexcept {
  Lines lines("/proc/self/maps");
  Mapping beginning;  // beginning of the file that was mapped last
  while (const char* const line = lines.next()) {
    const Mapping m = parse(line);
    const bool is_same = m.device == beginning.device && m.inode == beginning.inode;
    if (m.offset == 0 || !is_same) beginning = m;
    if (wanted < m.start || wanted >= m.end) continue;
    if (*m.path != '/' && std::strcmp(m.path, "[vdso]") != 0) return false;
    const std::size_t length = std::min(std::strlen(m.path), sizeof module.path - 1);
    std::memcpy(module.path, m.path, length);
    module.path[length] = '\0';
    // If the beginning is not mapped, the offset in the file is the best one known.
    module.offset = beginning.offset == 0 ? wanted - load_bias(beginning.start) : wanted - m.start + m.offset;
    return true;
  }
  return false;
}

}  // namespace

bool find_module(const void* address, Module& module) noexcept {
  const base::KeepErrno keep;
  return search(reinterpret_cast<std::uintptr_t>(address), module);
}

std::size_t mapped_parts(std::span<const char* const> libraries, std::span<Mapped> found) noexcept {
  const base::KeepErrno keep;
  std::size_t count = 0;
  std::uintptr_t end = 0;  // end of a library's part, if that was the last line
  for (Lines lines("/proc/self/maps"); const char* const line = lines.next();) {
    const Mapping m = parse(line);
    const char* const slash = std::strrchr(m.path, '/');
    const bool is_library = slash != nullptr && std::any_of(libraries.begin(), libraries.end(), [&](const char* name) {
                              return std::strncmp(slash + 1, name, std::strlen(name)) == 0;
                            });
    const bool is_bss = *m.path == '\0' && m.start == end && m.is_writable;
    end = is_library ? m.end : 0;
    if ((is_library || is_bss) && m.is_readable && count < found.size()) found[count++] = {m.start, m.end, m.is_writable};
  }
  return count;
}

bool is_standard_buffer([[maybe_unused]] const void* block) noexcept {
#if defined(__GLIBC__)
  for (const FILE* const stream : {stdin, stdout, stderr})
    if (stream->_IO_buf_base == block) return true;
#endif
  return false;
}

}  // namespace freehold::os
