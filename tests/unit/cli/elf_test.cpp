// SPDX-License-Identifier: MIT
#include "tools/launch/program.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/test.hpp"
#include "tools/support/file_descriptor.hpp"

namespace freehold::cli {
namespace {

// A program file in memory, written header by header.
class Image {
 public:
  Image() {
    std::memcpy(header_.e_ident, ELFMAG, SELFMAG);
    header_.e_ident[EI_CLASS] = ELFCLASS64;
    header_.e_ident[EI_DATA] = ELFDATA2LSB;
    header_.e_type = ET_DYN;
    header_.e_machine = EM_X86_64;
    header_.e_phoff = sizeof header_;
    header_.e_phentsize = sizeof(ElfW(Phdr));
  }
  ElfW(Ehdr) & header() { return header_; }
  void segment(ElfW(Word) type, const std::string& content) {
    ElfW(Phdr) segment{};
    segment.p_type = type;
    segment.p_filesz = content.size();
    segments_.push_back(segment);
    contents_.push_back(content);
  }
  Elf read(std::size_t cut = SIZE_MAX) {
    header_.e_phnum = static_cast<ElfW(Half)>(segments_.size());
    std::size_t offset = sizeof header_ + segments_.size() * sizeof(ElfW(Phdr));
    std::string bytes(reinterpret_cast<const char*>(&header_), sizeof header_);
    std::string tail;
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      segments_[i].p_offset = offset + tail.size();
      bytes.append(reinterpret_cast<const char*>(&segments_[i]), sizeof segments_[i]);
      tail += contents_[i];
    }
    bytes = (bytes + tail).substr(0, cut);
    const FileDescriptor file(::memfd_create("image", MFD_CLOEXEC));
    EXPECT_EQ(::write(file.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    return read_elf(file.get());
  }

 private:
  ElfW(Ehdr) header_ {};
  std::vector<ElfW(Phdr)> segments_;
  std::vector<std::string> contents_;
};

TEST(Elf, CutAnywhere_NeverReadsPastTheEnd) {
  Image image;
  image.segment(PT_INTERP, std::string("/ld", 4));
  const std::size_t whole = sizeof(ElfW(Ehdr)) + sizeof(ElfW(Phdr)) + 4;
  EXPECT_EQ(image.read(whole).kind, Elf::Kind::kElf);
  for (std::size_t cut = 0; cut < whole; ++cut) {
    EXPECT_EQ(image.read(cut).kind, cut < SELFMAG ? Elf::Kind::kNotElf : Elf::Kind::kMalformed) << cut;
  }
}

TEST(Elf, AbsurdHeaders_Malformed) {
  Image interpreter_without_end;
  interpreter_without_end.segment(PT_INTERP, "/ld.so");
  EXPECT_EQ(interpreter_without_end.read().kind, Elf::Kind::kMalformed);
  Image far_table;
  far_table.segment(PT_LOAD, "");
  far_table.header().e_phoff = UINT64_MAX - 8;
  EXPECT_EQ(far_table.read().kind, Elf::Kind::kMalformed);
  Image odd_entries;
  odd_entries.segment(PT_LOAD, "");
  odd_entries.header().e_phentsize = 1;
  EXPECT_EQ(odd_entries.read().kind, Elf::Kind::kMalformed);
  Image empty;
  EXPECT_EQ(empty.read().kind, Elf::Kind::kMalformed);
}

TEST(Elf, ExportsFunction_LibcHasMallocThisProgramHasNot) {
  const FileDescriptor own(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(exports_function(own.get(), "no_such_function"));
  Dl_info info{};
  ASSERT_NE(::dladdr(::dlsym(RTLD_DEFAULT, "getpid"), &info), 0);
  const FileDescriptor libc(::open(info.dli_fname, O_RDONLY | O_CLOEXEC));
  EXPECT_TRUE(exports_function(libc.get(), "malloc"));
  EXPECT_FALSE(exports_function(libc.get(), "mallo"));
  EXPECT_FALSE(exports_function(libc.get(), "malloc_"));
  EXPECT_FALSE(exports_function(-1, "malloc"));
}

}  // namespace
}  // namespace freehold::cli
