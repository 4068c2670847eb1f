// SPDX-License-Identifier: MIT
#include "tools/launch/program.hpp"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

#include "tools/doctor/facts/own_malloc.hpp"
#include "tools/support/failure.hpp"
#include "tools/support/file_descriptor.hpp"

namespace freehold::inline tools {
namespace {

constexpr int kMaxInterpreters = 5;         // the kernel's limit on scripts that interpret scripts
constexpr std::size_t kMaxFirstLine = 256;  // the kernel's BINPRM_BUF_SIZE
constexpr const char* kDefaultPath = "/usr/local/bin:/usr/bin:/bin";
constexpr std::string_view kLinkInstead = "link it with freehold::malloc instead";

[[noreturn]] void refuse(const std::string& program, std::string_view why) {
  throw Failure(kExitRefused, fmt::format("{}: {}", printable(program), why));
}

// 0 if the file can be executed, otherwise the errno that execve would give.
int execute_error(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return errno;
  if (S_ISDIR(info.st_mode)) return EISDIR;
  if (!S_ISREG(info.st_mode)) return EACCES;
  return ::access(path.c_str(), X_OK) == 0 ? 0 : errno;
}

[[noreturn]] void cannot_execute(const std::string& path, int error) {
  if (error == ENOENT || error == ENOTDIR) {
    throw Failure(kExitNotFound, fmt::format("{}: no such program", printable(path)));
  }
  const char* way_out = error == EACCES ? "; is it a program? then chmod +x it" : "";
  throw Failure(kExitCannotExecute, fmt::format("cannot execute {}: {}{}", printable(path), error_text(error), way_out));
}

std::vector<std::string> path_folders() {
  const char* path = std::getenv("PATH");
  std::vector<std::string> folders;
  std::istringstream in(path != nullptr ? path : kDefaultPath);
  for (std::string folder; std::getline(in, folder, ':');) folders.push_back(folder.empty() ? "." : folder);
  return folders;
}

// A privileged program makes the dynamic linker ignore LD_PRELOAD: set-id bits that would change an id, or capabilities.
void check_privileges(int fd, const std::string& program) {
  struct stat info{};
  struct statvfs mount{};
  if (::fstat(fd, &info) != 0 || ::fstatvfs(fd, &mount) != 0) return;
  if ((mount.f_flag & ST_NOSUID) != 0 || ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) return;
  const bool setuid = (info.st_mode & S_ISUID) != 0 && info.st_uid != ::getuid();
  const bool setgid = (info.st_mode & S_ISGID) != 0 && (info.st_mode & S_IXGRP) != 0 && info.st_gid != ::getgid();
  if (setuid || setgid) {
    refuse(program, fmt::format("a set{}id program ignores LD_PRELOAD; {}, or run an ordinary copy of it",
                                setuid ? 'u' : 'g', kLinkInstead));
  }
  if (::getuid() != 0 && ::fgetxattr(fd, "security.capability", nullptr, 0) > 0) {
    refuse(program, fmt::format("a program with file capabilities ignores LD_PRELOAD; {}, or run an ordinary copy of it",
                                kLinkInstead));
  }
}

void check_elf(const Elf& elf, const std::string& program, const std::string& library) {
  if (elf.kind == Elf::Kind::kMalformed) {
    throw Failure(kExitCannotExecute, fmt::format("cannot execute {}: its ELF headers are damaged", printable(program)));
  }
  const FileDescriptor library_file(::open(library.c_str(), O_RDONLY | O_CLOEXEC));
  const Elf ours = read_elf(library_file.get());
  if (ours.kind == Elf::Kind::kElf && !elf.same_machine(ours)) {
    refuse(program, fmt::format("a program for {}, and {} is for {}; build Freehold for it and set FREEHOLD_LIBRARY",
                                machine_text(elf), printable(library), machine_text(ours)));
  }
  if (elf.interpreter.empty() && !elf.is_library && freehold::doctor::is_go_program(program)) {
    refuse(program, "a static Go program allocates from Go's own heap, which no other malloc can replace");
  }
  if (elf.interpreter.empty() && !elf.is_library) {
    refuse(program, fmt::format("a static program has no dynamic linker to load libfreehold.so; {}", kLinkInstead));
  }
  if (elf.interpreter.find("/ld-musl-") != std::string::npos) {
    refuse(program,
           fmt::format("a program for the musl C library cannot load libfreehold.so, which needs glibc; {}", kLinkInstead));
  }
}

// The words of the line behind "#!", empty if the file is no script.
std::vector<std::string> script_words(int fd) {
  std::string text(kMaxFirstLine, '\0');
  const ssize_t got = ::pread(fd, text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  if (!text.starts_with("#!")) return {};
  std::istringstream line(text.substr(2, text.find('\n') - 2));
  std::vector<std::string> words;
  for (std::string word; line >> word;) words.push_back(word);
  return words;
}

// "#!/usr/bin/env [-S] [NAME=value…] python3": the program that env will execute; empty if that takes more to know.
std::string program_of_env(const std::vector<std::string>& words) {
  if (words.size() < 2 || !words[0].ends_with("/env")) return {};
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "-S" || words[i].find('=') != std::string::npos) continue;
    return words[i].starts_with('-') ? std::string() : words[i];
  }
  return {};
}

void check(const std::string& program, const std::string& library, int depth) {
  if (const int error = execute_error(program); error != 0) cannot_execute(program, error);
  const FileDescriptor file(::open(program.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return;  // executable but not readable: nothing can be said beforehand
  if (const Elf elf = read_elf(file.get()); elf.kind != Elf::Kind::kNotElf) {
    check_elf(elf, program, library);
    return check_privileges(file.get(), program);
  }
  // A script; the kernel ignores its set-id bits. A file of neither kind is run by /bin/sh, as execvp does.
  const std::vector<std::string> words = script_words(file.get());
  const std::string interpreter = words.empty() ? "/bin/sh" : words.front();
  if (depth == kMaxInterpreters) {
    throw Failure(kExitCannotExecute, fmt::format("cannot execute {}: {}", printable(program), error_text(ELOOP)));
  }
  try {
    check(interpreter, library, depth + 1);
    if (const std::string target = program_of_env(words); !target.empty()) check(find_program(target), library, depth + 1);
  } catch (const Failure& failure) {
    // An interpreter that is missing is not the script that is missing.
    const int code = failure.exit_code() == kExitNotFound ? kExitCannotExecute : failure.exit_code();
    throw Failure(code, fmt::format("{}: its interpreter {}", printable(program), failure.what()));
  }
}

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

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  if (name.empty()) throw Failure(kExitNotFound, "the program's name is empty");
  std::string forbidden;
  for (const std::string& folder : path_folders()) {
    std::string path = folder + '/' + name;
    const int error = execute_error(path);
    if (error == 0) return path;
    if (error == EACCES && forbidden.empty()) forbidden = path;
  }
  if (!forbidden.empty()) cannot_execute(forbidden, EACCES);
  throw Failure(kExitNotFound, fmt::format("{}: no such program in PATH; give its path, for example ./{}", printable(name),
                                           printable(name)));
}

void check_program(const std::string& program, const std::string& library) { check(program, library, 0); }

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

}  // namespace freehold::inline tools
