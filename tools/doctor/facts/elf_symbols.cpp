// SPDX-License-Identifier: MIT
#include "tools/doctor/facts/elf_symbols.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "freehold/os/mapped_file.hpp"

namespace freehold::doctor {
namespace {

std::string_view text_at(std::string_view texts, std::uint64_t at) {
  if (at >= texts.size()) return {};
  const std::string_view rest = texts.substr(at);
  return rest.substr(0, rest.find('\0'));
}

}  // namespace

std::optional<ElfFile> ElfFile::open(const std::string& file) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return std::nullopt;
  struct stat info{};
  const void* data = nullptr;
  if (::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size >= static_cast<off_t>(sizeof(Elf64_Ehdr)))
    data = os::MappedFile::map_for_reading(fd, static_cast<std::size_t>(info.st_size));
  ::close(fd);
  if (data == nullptr) return std::nullopt;
  ElfFile elf(static_cast<const char*>(data), static_cast<std::size_t>(info.st_size));
  const bool is_elf =
      std::memcmp(elf.data_, ELFMAG, SELFMAG) == 0 && elf.data_[EI_CLASS] == ELFCLASS64 && elf.data_[EI_DATA] == ELFDATA2LSB;
  return is_elf ? std::optional(std::move(elf)) : std::nullopt;
}

ElfFile::ElfFile(ElfFile&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}

ElfFile::~ElfFile() {
  if (data_ != nullptr) os::MappedFile::unmap(data_, bytes_);
}

// None of a table that is not whole, or does not lie where its entries may be read.
template <class Entry>
std::span<const Entry> ElfFile::entries(std::uint64_t offset, std::uint64_t bytes) const {
  if (offset > bytes_ || bytes > bytes_ - offset || offset % alignof(Entry) != 0) return {};
  return {reinterpret_cast<const Entry*>(data_ + offset), static_cast<std::size_t>(bytes / sizeof(Entry))};
}

void ElfFile::each_symbol(const std::function<void(const ElfSymbol&)>& look) const {
  const auto& header = *reinterpret_cast<const Elf64_Ehdr*>(data_);
  const auto sections = entries<Elf64_Shdr>(header.e_shoff, std::uint64_t{header.e_shnum} * sizeof(Elf64_Shdr));
  const auto segments = entries<Elf64_Phdr>(header.e_phoff, std::uint64_t{header.e_phnum} * sizeof(Elf64_Phdr));
  const auto offset_of = [&](std::uint64_t address) -> std::uint64_t {
    for (const Elf64_Phdr& segment : segments) {
      const bool is_code = segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0;
      if (is_code && address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz)
        return address - segment.p_vaddr + segment.p_offset;
    }
    return 0;
  };
  for (const Elf64_Shdr& section : sections) {
    if ((section.sh_type != SHT_SYMTAB && section.sh_type != SHT_DYNSYM) || section.sh_link >= sections.size()) continue;
    const auto names = entries<char>(sections[section.sh_link].sh_offset, sections[section.sh_link].sh_size);
    const std::string_view texts(names.data(), names.size());
    for (const Elf64_Sym& symbol : entries<Elf64_Sym>(section.sh_offset, section.sh_size)) {
      if (symbol.st_shndx == SHN_UNDEF || symbol.st_name == 0) continue;
      const unsigned type = ELF64_ST_TYPE(symbol.st_info);
      const bool is_code = type == STT_FUNC || type == STT_GNU_IFUNC;
      look({.name = text_at(texts, symbol.st_name),
            .offset = is_code ? offset_of(symbol.st_value) : 0,
            .address = symbol.st_value,
            .bytes = symbol.st_size,
            .is_exported = section.sh_type == SHT_DYNSYM && ELF64_ST_BIND(symbol.st_info) != STB_LOCAL});
    }
  }
}

std::string_view ElfFile::section(std::string_view name) const {
  const auto& header = *reinterpret_cast<const Elf64_Ehdr*>(data_);
  const auto sections = entries<Elf64_Shdr>(header.e_shoff, std::uint64_t{header.e_shnum} * sizeof(Elf64_Shdr));
  if (header.e_shstrndx >= sections.size()) return {};
  const auto names = entries<char>(sections[header.e_shstrndx].sh_offset, sections[header.e_shstrndx].sh_size);
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type == SHT_NOBITS || text_at({names.data(), names.size()}, section.sh_name) != name) continue;
    const auto content = entries<char>(section.sh_offset, section.sh_size);
    return {content.data(), content.size()};
  }
  return {};
}

bool ElfFile::is_program() const {
  const auto& header = *reinterpret_cast<const Elf64_Ehdr*>(data_);
  if (header.e_type == ET_EXEC) return true;
  for (const Elf64_Phdr& segment : entries<Elf64_Phdr>(header.e_phoff, std::uint64_t{header.e_phnum} * sizeof(Elf64_Phdr))) {
    if (segment.p_type == PT_INTERP) return true;
  }
  return false;
}

}  // namespace freehold::doctor
