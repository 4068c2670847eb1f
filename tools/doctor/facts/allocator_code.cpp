// SPDX-License-Identifier: MIT
#include "tools/doctor/facts/allocator_code.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "tools/doctor/facts/elf_symbols.hpp"
#include "tools/doctor/facts/file_names.hpp"
#include "tools/doctor/facts/own_malloc.hpp"

namespace freehold::doctor {
namespace {

constexpr std::array<std::string_view, 16> kMalloc{
    "malloc",    "free",        "calloc",         "realloc",     "memalign", "aligned_alloc", "valloc",
    "pvalloc",   "mallopt",     "posix_memalign", "malloc_trim", "mallinfo", "malloc_info",   "malloc_usable_size",
    "mallinfo2", "malloc_stats"};
constexpr std::array<std::string_view, 8> kMemoryCalls{"mmap",     "mmap64", "munmap", "madvise",
                                                       "mprotect", "mremap", "brk",    "sbrk"};
constexpr std::array<std::string_view, 4> kLocks{"pthread_mutex_*", "__pthread_mutex_*", "pthread_spin_*", "mtx_*"};
constexpr std::array<std::string_view, 5> kWaits{"pthread_rwlock_*", "__pthread_rwlock_*", "pthread_cond_*",
                                                 "pthread_barrier_*", "sem_*"};
constexpr std::array<std::string_view, 22> kOwn{"je_*",
                                                "_rjem_*",
                                                "mi_*",
                                                "_mi_*",
                                                "tc_*",
                                                "_ZN8tcmalloc*",
                                                "_ZN8SpinLock*",
                                                "_ZN14SpinLockHolder*",
                                                "_ZN4base8internal*",
                                                "_ZN8snmalloc*",
                                                "sn_*",
                                                "rpmalloc*",
                                                "runtime.malloc*",
                                                "PyObject_Malloc*",
                                                "_PyObject_Malloc*",
                                                "PyObject_Free*",
                                                "_PyObject_Mi*",
                                                "_PyMem_Mi*",
                                                "_PyObject_Free*",
                                                "_emalloc*",
                                                "_efree*",
                                                "_ZN8freehold5alloc*"};

constexpr std::array<std::string_view, 3> kTeams{"libgomp.so", "libomp.so", "libiomp5.so"};
constexpr std::array<std::string_view, 6> kTeamLocks{"GOMP_critical_",    "GOMP_atomic_",    "omp_set_lock",
                                                     "omp_set_nest_lock", "__kmpc_critical", "__kmpc_set_"};

bool is_one_of(std::string_view name, const auto& names) {
  return std::ranges::any_of(names, [name](std::string_view pattern) {
    return pattern.ends_with('*') ? name.starts_with(pattern.substr(0, pattern.size() - 1)) : name == pattern;
  });
}

// From behind the last named function before malloc's to the end of malloc's last.
std::optional<std::pair<std::uint64_t, std::uint64_t>> malloc_of_libc(const std::vector<ElfSymbol>& functions) {
  std::uint64_t first = UINT64_MAX, last = 0, before = 0;
  for (const ElfSymbol& symbol : functions) {
    if (!is_one_of(symbol.name, kMalloc)) continue;
    first = std::min(first, symbol.offset);
    last = std::max(last, symbol.offset + symbol.bytes);
  }
  if (last == 0) return std::nullopt;
  for (const ElfSymbol& symbol : functions) {
    if (symbol.offset < first) before = std::max(before, symbol.offset + symbol.bytes);
  }
  return std::pair{std::min(before, first), last};
}

}  // namespace

std::string_view name_of(CodeKind kind) noexcept {
  switch (kind) {
    case CodeKind::kOther: return "other";
    case CodeKind::kMalloc: return "malloc";
    case CodeKind::kOwnAllocator: return "own-allocator";
    case CodeKind::kMemoryCall: return "memory-call";
    case CodeKind::kMallocLock: return "malloc-lock";
    case CodeKind::kLock: return "lock";
    case CodeKind::kTeam: return "team";
    case CodeKind::kWait: return "wait";
  }
  __builtin_unreachable();
}

AllocatorCode::AllocatorCode(const std::vector<live::CodeMapping>& mappings, const std::string& root) {
  for (const std::string& file : live::files_of(mappings)) add_file(file, root + file, mappings);
  if (has_team_locks_) std::erase_if(ranges_, [](const Range& range) { return range.kind == CodeKind::kTeam; });
  std::ranges::sort(ranges_, {}, &Range::begin);
}

void AllocatorCode::add_file(const std::string& file, const std::string& path,
                             const std::vector<live::CodeMapping>& mappings) {
  const auto elf = ElfFile::open(path);
  if (!elf || is_linker(file)) return;
  const auto add_whole = [&](CodeKind kind) {
    for (const live::CodeMapping& mapping : mappings)
      if (mapping.file == file) ranges_.push_back({mapping.begin, mapping.end, kind});
  };
  const std::string_view name = std::string_view(file).substr(file.rfind('/') + 1);
  if (std::ranges::any_of(kTeams, [&](std::string_view team) { return name.starts_with(team); }))
    return add_whole(CodeKind::kTeam);
  const std::string_view names = elf->section(".dynstr");  // of what it calls, too
  has_team_locks_ = has_team_locks_ || std::ranges::any_of(kTeamLocks, [&](std::string_view lock) {
                      return names.find(lock) != std::string_view::npos;
                    });
  std::vector<ElfSymbol> functions;
  bool exports_malloc = false, is_tbbs = false;
  elf->each_symbol([&](const ElfSymbol& symbol) {
    if (symbol.offset != 0) functions.push_back(symbol);
    if (!symbol.is_exported || symbol.offset == 0) return;
    exports_malloc = exports_malloc || symbol.name == "malloc";
    is_tbbs = is_tbbs || symbol.name == "scalable_malloc";  // its malloc is in another library, which calls this one
  });
  if (is_libc(file)) {
    if (const auto range = malloc_of_libc(functions))
      add(mappings, file, range->first, range->second - range->first, CodeKind::kMalloc);
    if (malloc_file_.empty()) malloc_file_ = file;
    for (const ElfSymbol& symbol : functions) {
      if (symbol.name == "__lll_lock_wait_private") add(mappings, file, symbol.offset, symbol.bytes, CodeKind::kMallocLock);
      if (is_one_of(symbol.name, kMemoryCalls)) add(mappings, file, symbol.offset, symbol.bytes, CodeKind::kMemoryCall);
      if (is_one_of(symbol.name, kLocks)) add(mappings, file, symbol.offset, symbol.bytes, CodeKind::kLock);
      if (is_one_of(symbol.name, kWaits)) add(mappings, file, symbol.offset, symbol.bytes, CodeKind::kWait);
    }
    return;
  }
  if ((exports_malloc || is_tbbs) && !elf->is_program()) {
    // A library that is there for its malloc: all of its code is.
    add_whole(CodeKind::kMalloc);
    if (exports_malloc) malloc_file_ = file;
    return;
  }
  if (exports_malloc) malloc_file_ = file;
  // A program may have functions whose names begin like an allocator's.
  const bool has_own = !own_mallocs({path}).empty();
  for (const ElfSymbol& symbol : functions) {
    const bool is_malloc = exports_malloc && is_one_of(symbol.name, kMalloc);
    if (is_malloc || ((exports_malloc || has_own) && is_one_of(symbol.name, kOwn)))
      add(mappings, file, symbol.offset, symbol.bytes, is_malloc || !has_own ? CodeKind::kMalloc : CodeKind::kOwnAllocator);
  }
}

void AllocatorCode::add(const std::vector<live::CodeMapping>& mappings, const std::string& file, std::uint64_t offset,
                        std::uint64_t bytes, CodeKind kind) {
  for (const live::CodeMapping& mapping : mappings) {
    if (mapping.file != file || offset < mapping.offset || offset - mapping.offset >= mapping.end - mapping.begin) continue;
    const std::uint64_t begin = mapping.begin + (offset - mapping.offset);
    ranges_.push_back({begin, begin + bytes, kind});
  }
}

CodeKind AllocatorCode::kind_of(std::uint64_t address) const noexcept {
  auto after = std::ranges::upper_bound(ranges_, address, {}, &Range::begin);
  // Functions may have several names, and so several ranges that begin together.
  for (int looks = 0; after != ranges_.begin() && looks < 8; ++looks) {
    --after;
    if (address < after->end) return after->kind;
  }
  return CodeKind::kOther;
}

}  // namespace freehold::doctor
