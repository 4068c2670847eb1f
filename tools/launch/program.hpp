// SPDX-License-Identifier: MIT
// Finds the program that a command line names, as the shell would, and checks whether LD_PRELOAD can work: static and setuid
// programs, and programs for another machine or C library, ignore it without a message. The error is one line with the
// reason and the way out. Scripts are followed to their interpreter.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace freehold::inline tools {

// The file that `name` stands for: itself if it has a slash, otherwise found in PATH.
// Throws Failure: kExitNotFound, or kExitCannotExecute when a file was found that may not be executed.
[[nodiscard]] std::string find_program(const std::string& name);
// Throws Failure if `program`, or the interpreter of a script, cannot be executed or would ignore `library`.
void check_program(const std::string& program, const std::string& library);

// Reads from a program's ELF headers whether LD_PRELOAD can work: its machine, and the dynamic linker that it asks for.
struct Elf {
  enum class Kind : std::uint8_t {
    kNotElf,     // no ELF magic: a script, or data
    kMalformed,  // ELF magic, but the headers are cut short or contradict themselves
    kElf,
  };
  Kind kind = Kind::kNotElf;
  unsigned char bits = 0;        // EI_CLASS: ELFCLASS32 or ELFCLASS64
  unsigned char byte_order = 0;  // EI_DATA
  std::uint16_t machine = 0;     // e_machine
  std::string interpreter;       // PT_INTERP: the dynamic linker; empty for a static program, and for foreign machines
  bool is_library = false;       // has a DT_SONAME: libc.so.6, or the dynamic linker itself

  [[nodiscard]] bool same_machine(const Elf& other) const noexcept {
    return bits == other.bits && byte_order == other.byte_order && machine == other.machine;
  }
};

// Reads the headers of an open file. Never throws for what it finds in the file; a read error counts as kNotElf.
[[nodiscard]] Elf read_elf(int fd);
// Returns whether an open file of this machine defines `function` for others: as a library does, or a program that replaces
// what a library has. Unreadable and damaged files do not.
[[nodiscard]] bool exports_function(int fd, std::string_view function);
// For people: "32-bit x86", "64-bit ARM", "machine 243".
[[nodiscard]] std::string machine_text(const Elf& elf);

}  // namespace freehold::inline tools
