// SPDX-License-Identifier: MIT
#include "tools/doctor/facts/symbols.hpp"

#include <cxxabi.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include "tools/doctor/facts/file_names.hpp"
#include "tools/doctor/facts/perf_map.hpp"
#include "tools/live/maps_words.hpp"

extern "C" char* rust_demangle(const char* name, int options);  // of libiberty, which has no header for it

namespace freehold::doctor {

// Names of Rust's own form begin with _R; others have C++'s. binutils' library knows both, the C++ library C++'s alone.
std::string demangled(const char* name) {
  if (std::string_view(name).starts_with("_R")) {
    const std::unique_ptr<char, void (*)(void*)> text(::rust_demangle(name, 0), std::free);
    if (text != nullptr) return text.get();
  }
  if (!std::string_view(name).starts_with("_Z")) return name;  // "f" would be a type, float
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  std::string found = status == 0 ? text.get() : name;
  // A function's parts that the compiler made are the same function to a reader.
  if (const auto clone = found.find(" [clone "); clone != std::string::npos) found.resize(clone);
  return found;
}

namespace {

std::string number_text(std::uint64_t address) {
  std::ostringstream text;
  text << "0x" << std::hex << address;
  return text.str();
}

// The name that the linker knows, or that the source has.
std::string name_of(Dwarf_Die* function) {
  Dwarf_Attribute attribute;
  for (const unsigned which : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name})
    if (const char* const name = dwarf_formstring(dwarf_attr_integrate(function, which, &attribute)); name != nullptr)
      return demangled(name);
  const char* const name = dwarf_diename(function);
  return name == nullptr ? "" : name;
}

// The place from which an inlined function was called.
void set_call_site(Dwarf_Die* compilation_unit, Dwarf_Die* inlined, Frame& caller) {
  Dwarf_Attribute attribute;
  Dwarf_Word file = 0, line = 0;
  Dwarf_Files* files = nullptr;
  if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &line) != 0 ||
      dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &file) != 0 ||
      dwarf_getsrcfiles(compilation_unit, &files, nullptr) != 0)
    return;
  if (const char* const name = dwarf_filesrc(files, file, nullptr, nullptr); name != nullptr) {
    caller.file = name;
    caller.line = static_cast<unsigned>(line);
  }
}

}  // namespace

std::string Frame::text() const {
  std::ostringstream text;
  text << (function.empty() ? "?" : function);
  if (!file.empty())
    text << " at " << base_name(file) << ':' << line;
  else if (!module.empty())
    text << " in " << base_name(module);
  return text.str();
}

namespace {

std::uint64_t process_of(const std::filesystem::path& maps) {  // "PID-N.maps", "/proc/PID/maps"
  const std::string stem = (maps.filename() == "maps" ? maps.parent_path().filename() : maps.stem()).string();
  std::uint64_t pid = 0;
  std::from_chars(stem.data(), stem.data() + stem.size(), pid);
  return pid;
}

}  // namespace

// The parts of a memory map that have files: programs and libraries. Shared memory has a name as well, but no file of code.
class FileMappings {
 public:
  explicit FileMappings(const std::filesystem::path& maps) {
    std::ifstream in(maps);
    for (std::string text; std::getline(in, text);) {
      std::string_view line = text;
      const std::string_view range = live::next_word(line);
      for (int i = 0; i < 4; ++i) (void)live::next_word(line);  // access, offset, device, inode
      const std::string_view path = live::next_word(line);
      const std::size_t dash = range.find('-');
      std::uint64_t begin = 0, end = 0;
      if (!path.starts_with('/') || is_shared_memory(path) || dash == std::string_view::npos) continue;
      if (live::parse_hex(range.substr(0, dash), begin) && live::parse_hex(range.substr(dash + 1), end)) ends_[begin] = end;
    }
  }
  [[nodiscard]] bool have(std::uint64_t address) const {
    const auto after = ends_.upper_bound(address);
    return after != ends_.begin() && address < std::prev(after)->second;
  }

 private:
  static bool is_shared_memory(std::string_view path) {
    constexpr auto kNames = std::to_array<std::string_view>({"/memfd:", "/dev/zero", "/dev/shm/", "/SYSV", "//anon"});
    return std::ranges::any_of(kNames, [&](std::string_view name) { return path.starts_with(name); });
  }
  std::map<std::uint64_t, std::uint64_t> ends_;  // by their beginnings
};

struct Symbols::Library {
  PerfMap runtime;
  FileMappings files;
  Dwfl_Callbacks callbacks{.find_elf = dwfl_linux_proc_find_elf,
                           .find_debuginfo = dwfl_standard_find_debuginfo,
                           .section_address = nullptr,
                           .debuginfo_path = nullptr};
  Dwfl* dwfl = nullptr;

  explicit Library(const std::filesystem::path& maps)
      : runtime(PerfMap::of_process(process_of(maps))), files(maps), dwfl(dwfl_begin(&callbacks)) {
    const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(maps.c_str(), "re"), std::fclose);
    if (dwfl == nullptr || file == nullptr) return;
    dwfl_linux_proc_maps_report(dwfl, file.get());
    dwfl_report_end(dwfl, nullptr, nullptr);
  }
  ~Library() {
    if (dwfl != nullptr) dwfl_end(dwfl);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  [[nodiscard]] std::vector<Frame> frames(std::uint64_t address) {
    // A map that is older than the process must not rename its files' code. And first: what lies between a library's
    // segments is taken to be the library's.
    const auto named = runtime.frame(address);
    if (named && !files.have(address)) return {*named};
    Frame outermost;
    outermost.function = number_text(address);
    Dwfl_Module* const module = dwfl == nullptr ? nullptr : dwfl_addrmodule(dwfl, address);
    if (module == nullptr) return {named.value_or(outermost)};
    // Without a name: the place in the file, which is the same in each run, and which addr2line takes.
    Dwarf_Addr base = 0;
    if (dwfl_module_getelf(module, &base) != nullptr) outermost.function = number_text(address - base);
    if (const char* const name = dwfl_module_info(module, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
        name != nullptr)
      outermost.module = name;
    GElf_Off offset = 0;
    GElf_Sym symbol;
    if (const char* const name = dwfl_module_addrinfo(module, address, &offset, &symbol, nullptr, nullptr, nullptr);
        name != nullptr)
      outermost.function = demangled(name);
    else if (named)
      return {*named};
    Dwarf_Addr bias = 0;
    Dwarf_Die* const unit = unit_of(module, address, bias);
    if (unit == nullptr) return {outermost};
    set_line(unit, address - bias, outermost);
    return with_inlined(unit, address - bias, outermost);
  }

  // The compilation unit of an address. Not dwfl_module_addrdie(), which needs a section that Clang does not write.
  [[nodiscard]] Dwarf_Die* unit_of(Dwfl_Module* module, Dwarf_Addr address, Dwarf_Addr& bias) {
    auto [found, is_new] = units.try_emplace(module);
    if (is_new) {
      for (Dwarf_Die* unit = dwfl_module_nextcu(module, nullptr, &bias); unit != nullptr;
           unit = dwfl_module_nextcu(module, unit, &bias))
        add_ranges(found->second, unit, bias);
    }
    const auto after = found->second.upper_bound(address);
    if (after == found->second.begin()) return nullptr;
    const Range& range = std::prev(after)->second;
    bias = range.bias;
    return address < range.end ? range.unit : nullptr;
  }

  struct Range {
    Dwarf_Addr end, bias;
    Dwarf_Die* unit;
  };
  using Ranges = std::map<Dwarf_Addr, Range>;  // by their beginnings
  std::map<Dwfl_Module*, Ranges> units;

  static void add_ranges(Ranges& ranges, Dwarf_Die* unit, Dwarf_Addr bias) {
    Dwarf_Addr base = 0, begin = 0, end = 0;
    for (std::ptrdiff_t offset = 0; (offset = dwarf_ranges(unit, offset, &base, &begin, &end)) > 0;)
      ranges[begin + bias] = {end + bias, bias, unit};
  }

  static void set_line(Dwarf_Die* unit, Dwarf_Addr address, Frame& frame) {
    Dwarf_Line* const line = dwarf_getsrc_die(unit, address);
    int number = 0;
    if (line == nullptr || dwarf_lineno(line, &number) != 0) return;
    if (const char* const file = dwarf_linesrc(line, nullptr, nullptr); file != nullptr) {
      frame.file = file;
      frame.line = static_cast<unsigned>(number);
    }
  }

  // The code of a unit, by address. Not dwarf_getscopes(), which finds no function that is defined within another one: no
  // lambda.
  struct Function {
    Dwarf_Addr end;
    Dwarf_Die die;
  };
  using Functions = std::map<Dwarf_Addr, Function>;  // by their beginnings
  std::map<Dwarf_Die*, Functions> functions;

  // Visits the DIE's children.
  template <class Visit>
  static void each_child(Dwarf_Die& of, const Visit& visit) {
    Dwarf_Die child;
    if (dwarf_child(&of, &child) != 0) return;
    do {
      visit(child);
    } while (dwarf_siblingof(&child, &child) == 0);
  }
  static void add_functions(Functions& to, Dwarf_Die& of) {
    each_child(of, [&](Dwarf_Die& child) {
      const int tag = dwarf_tag(&child);
      if (tag != DW_TAG_subprogram && tag != DW_TAG_namespace && tag != DW_TAG_lexical_block &&
          tag != DW_TAG_structure_type && tag != DW_TAG_class_type)
        return;
      Dwarf_Addr base = 0, begin = 0, end = 0;
      if (tag == DW_TAG_subprogram)
        for (std::ptrdiff_t offset = 0; (offset = dwarf_ranges(&child, offset, &base, &begin, &end)) > 0;)
          to.try_emplace(begin, Function{end, child});
      add_functions(to, child);
    });
  }
  // The calls inlined into `of` that are going on at the address, the outermost first.
  static void add_inlined(std::vector<Dwarf_Die>& to, Dwarf_Die& of, Dwarf_Addr address) {
    each_child(of, [&](Dwarf_Die& child) {
      const int tag = dwarf_tag(&child);
      if ((tag != DW_TAG_inlined_subroutine && tag != DW_TAG_lexical_block) || dwarf_haspc(&child, address) <= 0) return;
      if (tag == DW_TAG_inlined_subroutine) to.push_back(child);
      add_inlined(to, child, address);
    });
  }

  // The address's own line belongs to the innermost function; each caller's is that of the call.
  [[nodiscard]] std::vector<Frame> with_inlined(Dwarf_Die* unit, Dwarf_Addr address, const Frame& outermost) {
    const auto [known, is_new] = functions.try_emplace(unit);
    if (is_new) add_functions(known->second, *unit);
    const auto after = known->second.upper_bound(address);
    if (after == known->second.begin() || address >= std::prev(after)->second.end) return {outermost};
    std::vector<Dwarf_Die> inlined_calls;
    add_inlined(inlined_calls, std::prev(after)->second.die, address);
    std::vector<Frame> frames;
    Frame current = outermost;
    for (auto call = inlined_calls.rbegin(); call != inlined_calls.rend(); ++call) {
      Frame inlined = current;
      inlined.function = name_of(&*call);
      inlined.inlined = true;
      frames.push_back(std::move(inlined));
      set_call_site(unit, &*call, current);
    }
    frames.push_back(current);
    return frames;
  }
};

Symbols::Symbols(const std::filesystem::path& maps) : library_(std::make_unique<Library>(maps)) {}
Symbols::~Symbols() = default;

const std::vector<Frame>& Symbols::frames(std::uint64_t address) {
  const auto [found, is_new] = known_.try_emplace(address);
  // A return address is the one behind the call, which may be the next line's, or the next function's.
  if (is_new) found->second = library_->frames(address - 1);
  return found->second;
}

}  // namespace freehold::doctor
