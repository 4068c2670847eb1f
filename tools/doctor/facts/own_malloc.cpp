// SPDX-License-Identifier: MIT
#include "tools/doctor/facts/own_malloc.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <span>

#include "tools/doctor/facts/elf_symbols.hpp"
#include "tools/doctor/facts/file_names.hpp"

namespace freehold::doctor {
namespace {

using Names = std::vector<std::string_view>;

// The C library's names. An allocator that replaces malloc defines them; operator new then does not call malloc, either.
const Names kMallocNames{"malloc",
                         "calloc",
                         "realloc",
                         "reallocarray",
                         "posix_memalign",
                         "aligned_alloc",
                         "memalign",
                         "valloc",
                         "_Znwm",
                         "_Znam",
                         "_ZnwmRKSt9nothrow_t",
                         "_ZnamRKSt9nothrow_t",
                         "_ZnwmSt11align_val_t",
                         "_ZnamSt11align_val_t"};

constexpr std::string_view kPython = "CPython's allocator", kFreePython = "free-threaded CPython's mimalloc";

struct Sign {
  std::string_view name;
  Names symbols;                               // any of which tells it; "…*": a prefix, "*…": a suffix
  std::string_view trace;                      // in a file without a symbol table; empty: none
  Names functions;                             // those of its functions that allocate
  bool replaces_malloc;                        // where the file defines malloc, it is this one
  std::string_view variable = {}, value = {};  // that leave all to malloc
};

const std::vector<Sign>& signs() {
  static const std::vector<Sign> kSigns{
      {"jemalloc",
       {"mallctl", "je_mallctl", "_rjem_mallctl", "je_arena_init"},
       "<jemalloc>: ",
       {"je_malloc", "je_calloc", "je_realloc", "je_mallocx", "je_rallocx", "je_aligned_alloc", "je_posix_memalign",
        "_rjem_malloc", "_rjem_calloc", "_rjem_realloc", "_rjem_mallocx", "_rjem_rallocx", "_rjem_aligned_alloc",
        "_rjem_posix_memalign", "mallocx", "rallocx"},
       true},
      {"tcmalloc",
       {"tc_malloc", "MallocExtension_ReleaseFreeMemory", "_ZN8tcmalloc*"},
       "tcmalloc: large alloc",
       {"tc_malloc", "tc_calloc", "tc_realloc", "tc_new", "tc_newarray", "tc_memalign", "tc_posix_memalign"},
       true},
      {"mimalloc",
       {"mi_malloc", "_mi_malloc_generic", "mi_heap_malloc"},
       "mimalloc: ",
       {"mi_malloc", "mi_zalloc", "mi_calloc", "mi_realloc", "mi_malloc_aligned", "mi_zalloc_aligned", "mi_new"},
       true},
      {"snmalloc",
       {"_ZN8snmalloc*", "sn_malloc", "sn_rust_alloc"},
       {},
       {"sn_malloc", "sn_calloc", "sn_realloc", "sn_rust_alloc", "sn_rust_alloc_zeroed", "sn_rust_realloc"},
       true},
      {"rpmalloc",
       {"rpmalloc", "rpmalloc_initialize"},
       {},
       {"rpmalloc", "rpcalloc", "rprealloc", "rpaligned_alloc", "rpmemalign", "rpposix_memalign"},
       true},
      {"Go's allocator", {"runtime.mallocgc"}, {}, {"runtime.mallocgc"}, false},
      {kPython,
       {"PyObject_Malloc"},
       {},
       {"PyObject_Malloc", "PyObject_Calloc", "PyObject_Realloc", "PyMem_Malloc", "PyMem_Calloc", "PyMem_Realloc"},
       false,
       "PYTHONMALLOC",
       "malloc"},
      // Its PYTHONMALLOC knows no malloc. What PyObject_Malloc() and the interpreter itself take comes through these.
      {kFreePython,
       {"_Py_MergeZeroLocalRefcount"},
       {},
       {"_PyObject_MiMalloc", "_PyObject_MiCalloc", "_PyObject_MiRealloc", "_PyMem_MiMalloc", "_PyMem_MiCalloc",
        "_PyMem_MiRealloc"},
       false},
      {"the JVM's heap", {"JNI_CreateJavaVM"}, {}, {}, false},
      {"Arrow's memory pool", {"_ZN5arrow19default_memory_poolEv"}, {}, {}, false, "ARROW_DEFAULT_MEMORY_POOL", "system"},
      {"PHP's allocator",
       {"_emalloc"},
       {},
       {"_emalloc", "_ecalloc", "_erealloc", "_safe_emalloc"},
       false,
       "USE_ZEND_ALLOC",
       "0"},
      {"V8's heap", {"_ZN2v87Isolate*"}, {}, {}, false},
  };
  return kSigns;
}

bool matches(std::string_view symbol, std::string_view pattern) {
  return pattern.ends_with('*') ? symbol.starts_with(pattern.substr(0, pattern.size() - 1)) : symbol == pattern;
}

// The doctor itself puts these before the program's own.
bool is_ours(std::string_view file) { return base_name(file).starts_with("libfreehold"); }

// Says which of the functions that matter here a file has.
struct Contents {
  std::set<std::string_view> signs;  // names of Sign
  std::map<std::string_view, std::uint64_t> functions;
  bool exports_malloc = false;
  bool has_malloc = false;
};

Contents contents_of(const ElfFile& elf) {
  std::set<std::string_view> wanted(kMallocNames.begin(), kMallocNames.end());
  for (const Sign& sign : signs()) wanted.insert(sign.functions.begin(), sign.functions.end());
  Contents found;
  elf.each_symbol([&](const ElfSymbol& symbol) {
    for (const Sign& sign : signs()) {
      const auto is_it = [&](std::string_view pattern) { return matches(symbol.name, pattern); };
      if (std::ranges::any_of(sign.symbols, is_it)) found.signs.insert(sign.name);
    }
    const auto name = wanted.find(symbol.name);
    if (name == wanted.end() || symbol.offset == 0) return;
    found.functions[*name] = symbol.offset;
    if (*name != "malloc") return;
    found.has_malloc = true;
    found.exports_malloc = found.exports_malloc || symbol.is_exported;
  });
  return found;
}

// Stripped: texts that only the allocator has.
void add_traces(const ElfFile& elf, Contents& found) {
  if (elf.has_symbol_table()) return;
  for (const Sign& sign : signs()) {
    if (!sign.trace.empty() && elf.section(".rodata").find(sign.trace) != std::string_view::npos)
      found.signs.insert(sign.name);
  }
}

// Python 3.13 and later have mimalloc built in, and use it only where threads are free.
void settle_python(Contents& found) {
  if (!found.signs.contains(kPython)) return;
  if (found.signs.contains(kFreePython)) found.signs.erase(kPython);
  if (!found.has_malloc) found.signs.erase("mimalloc");
}

OwnMalloc described(const Sign& sign, const std::string& file, bool is_program, const Contents& found) {
  OwnMalloc own{.name = std::string(sign.name), .file = file, .is_reached = false, .functions = {}, .use_malloc = {}};
  if (!sign.variable.empty()) own.use_malloc = {std::string(sign.variable), std::string(sign.value)};
  const auto add = [&](const Names& names) {
    for (const std::string_view name : names) {
      if (const auto at = found.functions.find(name); at != found.functions.end()) own.functions.insert({file, at->second});
    }
  };
  add(sign.functions);
  if (sign.replaces_malloc && found.has_malloc) add(kMallocNames);
  own.is_reached = sign.replaces_malloc && found.exports_malloc && !is_program;
  return own;
}

}  // namespace

std::vector<OwnMalloc> own_mallocs(const std::set<std::string>& files) {
  std::vector<OwnMalloc> all;
  for (const std::string& file : files) {
    if (is_libc(file) || is_linker(file) || is_ours(file)) continue;
    const auto elf = ElfFile::open(file);
    if (!elf) continue;
    Contents found = contents_of(*elf);
    add_traces(*elf, found);
    if (!elf->section(".go.buildinfo").empty()) found.signs.insert("Go's allocator");
    settle_python(found);
    for (const Sign& sign : signs()) {
      if (found.signs.contains(sign.name)) all.push_back(described(sign, file, elf->is_program(), found));
    }
  }
  return all;
}

std::set<FunctionPlace> malloc_functions(const std::set<std::string>& files) {
  static const Names kFunctions{"malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc", "memalign"};
  std::set<FunctionPlace> places;
  for (const std::string& file : files) {
    if (!is_libc(file)) continue;
    const auto elf = ElfFile::open(file);
    if (!elf) continue;
    elf->each_symbol([&](const ElfSymbol& symbol) {
      const bool is_wanted = std::ranges::find(kFunctions, symbol.name) != kFunctions.end();
      if (is_wanted && symbol.is_exported && symbol.offset != 0) places.insert({file, symbol.offset});
    });
  }
  return places;
}

bool is_go_program(const std::string& file) {
  const auto elf = ElfFile::open(file);
  return elf && !elf->section(".go.buildinfo").empty();
}

std::vector<std::string> known_switches() {
  std::vector<std::string> switches;
  for (const Sign& sign : signs()) {
    if (!sign.variable.empty()) switches.push_back(std::string(sign.variable) + "=" + std::string(sign.value));
  }
  return switches;
}

}  // namespace freehold::doctor
