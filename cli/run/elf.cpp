// SPDX-License-Identifier: MIT
#include "cli/run/elf.hpp"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cstring>
#include <optional>
#include <vector>

namespace freehold::cli {
namespace {

constexpr unsigned char kNativeBits = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;
constexpr unsigned char kNativeOrder = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
constexpr std::size_t kMaxProgramHeaders = 1024;  // real programs have about a dozen
constexpr std::size_t kMaxInterpreter = 4096;     // PATH_MAX: the kernel's own limit
constexpr std::size_t kMaxDynamic = 1 << 20;
constexpr std::size_t kMaxSections = 65535;
constexpr std::size_t kMaxSymbolBytes = std::size_t{1} << 28;

bool read_exactly(int fd, void* to, std::size_t bytes, std::uint64_t offset) {
  return ::pread(fd, to, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
}

std::optional<std::vector<ElfW(Phdr)>> program_headers(int fd, const ElfW(Ehdr) & header) {
  if (header.e_phnum == 0 || header.e_phnum > kMaxProgramHeaders || header.e_phentsize != sizeof(ElfW(Phdr))) return {};
  std::vector<ElfW(Phdr)> table(header.e_phnum);
  if (!read_exactly(fd, table.data(), table.size() * sizeof(ElfW(Phdr)), header.e_phoff)) return {};
  return table;
}

std::optional<std::string> interpreter(int fd, const ElfW(Phdr) & segment) {
  if (segment.p_filesz < 2 || segment.p_filesz > kMaxInterpreter) return {};
  std::string text(segment.p_filesz, '\0');
  if (!read_exactly(fd, text.data(), text.size(), segment.p_offset) || text.back() != '\0') return {};
  text.resize(std::strlen(text.c_str()));
  return text;
}

bool has_soname(int fd, const ElfW(Phdr) & segment) {
  if (segment.p_filesz > kMaxDynamic) return false;
  std::vector<ElfW(Dyn)> entries(segment.p_filesz / sizeof(ElfW(Dyn)));
  if (!read_exactly(fd, entries.data(), entries.size() * sizeof(ElfW(Dyn)), segment.p_offset)) return false;
  for (const ElfW(Dyn) & entry : entries) {
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_SONAME) return true;
  }
  return false;
}

// The content of a section, one `Entry` after the other; empty if it is not whole.
template <class Entry>
std::vector<Entry> content(int fd, const ElfW(Shdr) & section) {
  struct stat file{};
  if (section.sh_size > kMaxSymbolBytes || ::fstat(fd, &file) != 0) return {};
  if (section.sh_size > static_cast<std::uint64_t>(file.st_size)) return {};  // no memory for what cannot be there
  std::vector<Entry> entries(section.sh_size / sizeof(Entry));
  if (!read_exactly(fd, entries.data(), entries.size() * sizeof(Entry), section.sh_offset)) return {};
  return entries;
}

}  // namespace

Elf read_elf(int fd) {
  Elf elf;
  unsigned char ident[EI_NIDENT];
  if (!read_exactly(fd, ident, SELFMAG, 0) || std::memcmp(ident, ELFMAG, SELFMAG) != 0) return elf;
  elf.kind = Elf::Kind::kMalformed;
  std::uint16_t machine = 0;
  if (!read_exactly(fd, ident, sizeof ident, 0)) return elf;
  if (!read_exactly(fd, &machine, sizeof machine, offsetof(ElfW(Ehdr), e_machine))) return elf;
  elf.bits = ident[EI_CLASS];
  elf.byte_order = ident[EI_DATA];
  elf.machine = elf.byte_order == kNativeOrder ? machine : __builtin_bswap16(machine);
  if (elf.bits != kNativeBits || elf.byte_order != kNativeOrder) {
    elf.kind = Elf::Kind::kElf;  // foreign: its machine is all that anyone asks for
    return elf;
  }

  ElfW(Ehdr) header;
  if (!read_exactly(fd, &header, sizeof header, 0)) return elf;
  const auto segments = program_headers(fd, header);
  if (!segments) return elf;
  for (const ElfW(Phdr) & segment : *segments) {
    if (segment.p_type == PT_DYNAMIC) elf.is_library = has_soname(fd, segment);
    if (segment.p_type != PT_INTERP) continue;
    auto text = interpreter(fd, segment);
    if (!text) return elf;
    elf.interpreter = *std::move(text);
  }
  elf.kind = Elf::Kind::kElf;
  return elf;
}

bool exports_function(int fd, std::string_view function) {
  ElfW(Ehdr) header;
  if (read_elf(fd).kind != Elf::Kind::kElf || !read_exactly(fd, &header, sizeof header, 0)) return false;
  if (header.e_ident[EI_CLASS] != kNativeBits || header.e_ident[EI_DATA] != kNativeOrder) return false;
  if (header.e_shentsize != sizeof(ElfW(Shdr)) || header.e_shnum == 0 || header.e_shnum > kMaxSections) return false;
  std::vector<ElfW(Shdr)> sections(header.e_shnum);
  if (!read_exactly(fd, sections.data(), sections.size() * sizeof(ElfW(Shdr)), header.e_shoff)) return false;
  for (const ElfW(Shdr) & section : sections) {
    if (section.sh_type != SHT_DYNSYM || section.sh_link >= sections.size()) continue;
    const auto names = content<char>(fd, sections[section.sh_link]);
    const std::string_view all(names.data(), names.size());
    for (const ElfW(Sym) & symbol : content<ElfW(Sym)>(fd, section)) {
      if (symbol.st_shndx == SHN_UNDEF || symbol.st_name >= all.size()) continue;
      const std::string_view name = all.substr(symbol.st_name);
      if (name.substr(0, name.find('\0')) == function) return true;
    }
    break;  // there is one such table
  }
  return false;
}

std::string machine_text(const Elf& elf) {
  const char* bits = elf.bits == ELFCLASS32 ? "32-bit" : "64-bit";
  switch (elf.machine) {
    case EM_386: return "32-bit x86";
    case EM_X86_64: return fmt::format("{} x86-64", bits);
    case EM_ARM: return "32-bit ARM";
    case EM_AARCH64: return "64-bit ARM";
    case EM_RISCV: return fmt::format("{} RISC-V", bits);
    case EM_PPC64: return "64-bit PowerPC";
    case EM_S390: return "IBM Z";
    default: return fmt::format("{} machine {}", bits, elf.machine);
  }
}

}  // namespace freehold::cli
