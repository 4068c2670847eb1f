// SPDX-License-Identifier: MIT
// The symbols of an ELF file, and where in the file their code lies: what a probe of the kernel's is given, and by which an
// allocator that was linked in is recognised. Files come from other people: every offset is checked, a damaged file has
// fewer symbols. One thread. Cost: the file is mapped; O(symbols) for each look.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace freehold::doctor {

struct ElfSymbol {
  std::string_view name;
  std::uint64_t offset = 0;   // of its code in the file; 0: it is not code, or lies nowhere in the file
  std::uint64_t address = 0;  // as the file was linked
  std::uint64_t bytes = 0;
  bool is_exported = false;  // others may call it, so that a library before this one could replace it
};

class ElfFile {
 public:
  // None: it cannot be read, or is no 64-bit ELF file of this byte order.
  [[nodiscard]] static std::optional<ElfFile> open(const std::string& file);
  ElfFile(ElfFile&& other) noexcept;
  ElfFile& operator=(ElfFile&&) = delete;
  ~ElfFile();

  // Symbols that the file defines. Views last as long as the file does.
  void each_symbol(const std::function<void(const ElfSymbol&)>& look) const;
  // Returns the content of a section; empty: it is missing.
  [[nodiscard]] std::string_view section(std::string_view name) const;
  [[nodiscard]] bool is_program() const;  // it asks for a dynamic linker, or needs none
  [[nodiscard]] bool has_symbol_table() const { return !section(".symtab").empty(); }
  [[nodiscard]] std::string_view content() const { return {data_, bytes_}; }

 private:
  ElfFile(const char* data, std::size_t bytes) : data_(data), bytes_(bytes) {}

  template <class Entry>
  [[nodiscard]] std::span<const Entry> entries(std::uint64_t offset, std::uint64_t bytes) const;

  const char* data_;
  std::size_t bytes_;
};

}  // namespace freehold::doctor
