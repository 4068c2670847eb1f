// SPDX-License-Identifier: MIT
#include "tools/doctor/facts/call_sites.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "tools/doctor/facts/file_names.hpp"

namespace freehold::doctor {
namespace {

bool begins_with_any(std::string_view text, std::span<const std::string_view> prefixes) {
  return std::ranges::any_of(prefixes, [&](std::string_view prefix) { return text.starts_with(prefix); });
}

// "std::vector<int>::resize" of "void std::vector<int>::resize<1>(unsigned long)": without return type and parameters.
std::string_view qualified_name(std::string_view function) {
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i < function.size(); ++i) {
    const std::string_view so_far = function.substr(begin, i - begin);
    if (depth == 0 && so_far.ends_with("operator")) continue;  // its sign is no bracket, its space is no end
    switch (function[i]) {
      case '(':
        if (depth == 0 && !function.substr(i).starts_with("(anonymous namespace)")) return so_far;
        [[fallthrough]];
      case '<':
      case '{':
      case '[': ++depth; break;
      case ')':
      case '>':
      case '}':
      case ']': --depth; break;
      case ' ':
        if (depth == 0) begin = i + 1;
        break;
      default: break;
    }
  }
  return function.substr(begin);
}

// The C names of allocation, with the wrappers that programs commonly have: none of them is where a program decides.
constexpr auto kAllocationNames = std::to_array<std::string_view>({"malloc",
                                                                   "calloc",
                                                                   "realloc",
                                                                   "reallocarray",
                                                                   "free",
                                                                   "memalign",
                                                                   "aligned_alloc",
                                                                   "valloc",
                                                                   "pvalloc",
                                                                   "cfree",
                                                                   "strdup",
                                                                   "strndup",
                                                                   "asprintf",
                                                                   "vasprintf",
                                                                   "__libc_malloc",
                                                                   "__libc_free",
                                                                   "xmalloc",
                                                                   "xcalloc",
                                                                   "xrealloc",
                                                                   "xzalloc",
                                                                   "xnmalloc",
                                                                   "xnrealloc",
                                                                   "xstrdup",
                                                                   "xstrndup",
                                                                   "xmemdup",
                                                                   "xfree",
                                                                   "x2realloc",
                                                                   "x2nrealloc",
                                                                   "xcharalloc",
                                                                   "xreallocarray",
                                                                   "g_malloc",
                                                                   "g_malloc0",
                                                                   "g_realloc",
                                                                   "g_free",
                                                                   "g_malloc_n",
                                                                   "g_strdup",
                                                                   "g_slice_alloc",
                                                                   "g_try_malloc",
                                                                   "zmalloc",
                                                                   "zcalloc",
                                                                   "zrealloc",
                                                                   "zfree",
                                                                   "posix_memalign",
                                                                   "__rust_alloc",
                                                                   "__rust_dealloc",
                                                                   "__rust_realloc",
                                                                   "__rust_alloc_zeroed",
                                                                   "_PyMem_RawMalloc",
                                                                   "PyMem_Malloc",
                                                                   "PyObject_Malloc",
                                                                   "_PyObject_New",
                                                                   "_PyObject_GC_New",
                                                                   "PyObject_Free",
                                                                   "PyMem_Free",
                                                                   "PyThread_acquire_lock",
                                                                   "PyThread_acquire_lock_timed",
                                                                   "take_gil",
                                                                   "drop_gil"});
constexpr auto kLibraryNames = std::to_array<std::string_view>(
    {"std::",     "__gnu_cxx::",      "__cxxabiv1::",     "boost::", "operator new", "operator delete",
     "__gthread", "__gthrw",          "alloc::",          "core::",  "hashbrown::",  "<alloc::",
     "<core::",   "<std::",           "<hashbrown::",     "__rdl_",  "__rg_",        "runtime.",
     "sync.(*",   "internal/runtime", "_PyObject_Malloc", "_PyMem_"});
constexpr auto kLibraryModules = std::to_array<std::string_view>(
    {"libc.so",     "libc-",       "libstdc++.so", "libc++.so",   "libc++abi",   "libgcc_s",    "libm.so",
     "libpthread",  "ld-linux",    "ld-2.",        "libfreehold", "libjemalloc", "libtcmalloc", "libmimalloc",
     "libsnmalloc", "librpmalloc", "libhoard",     "libjvm.so",   "libjli.so",   "libnio.so"});
constexpr auto kLibraryFolders =
    std::to_array<std::string_view>({"/include/c++/", "/c++/bits/", "/include/boost/", "/bits/gthr", "/rustc/",
                                     "/rustlib/src/", "/library/alloc/src/", "/library/core/src/", "/library/std/src/"});

bool is_library_source(const Frame& frame) {
  return std::ranges::any_of(kLibraryFolders,
                             [&](std::string_view folder) { return frame.file.find(folder) != std::string::npos; });
}
bool is_system_module(const Frame& frame) { return begins_with_any(base_name(frame.module), kLibraryModules); }

std::vector<Frame> named(const Evidence& of, StackId stack) {
  std::vector<Frame> frames;
  if (stack < of.recording.stacks.size())
    for (const std::uint64_t address : of.recording.stacks[stack]) {
      const auto& here = of.frames(address);
      frames.insert(frames.end(), here.begin(), here.end());
    }
  if (frames.empty()) frames.emplace_back();
  for (Frame& frame : frames)
    if (!frame.inlined && is_library_source(frame)) {  // inlined there, by a compiler that did not say so
      frame.file.clear();
      frame.line = 0;
    }
  return frames;
}

std::string key_of(const Frame& frame) {
  return frame.function + '\n' + frame.file + '\n' + std::to_string(frame.line) + '\n' + frame.module + '\n';
}

}  // namespace

StackIndex Stacks::of(std::size_t process, StackId stack) {
  const auto [found, is_new] = seen_[process].try_emplace(stack);
  if (is_new) found->second = add(named(processes_[process], stack));
  return found->second;
}

StackIndex Stacks::add(std::vector<Frame> frames) {
  const std::size_t site = site_among(frames);
  Known made;
  made.via = site > 0 ? frames[site - 1].function : "";
  frames.erase(frames.begin(), frames.begin() + static_cast<std::ptrdiff_t>(site));
  made.place = places_.try_emplace(key_of(frames.front()), places_.size()).first->second;
  std::string key = made.via + '\n';
  for (const Frame& frame : frames) key += key_of(frame);
  const auto [found, is_new] = by_text_.try_emplace(std::move(key), known_.size());
  made.frames = std::move(frames);
  if (is_new) known_.push_back(std::move(made));
  return found->second;
}

Place place_of(const Stacks& stacks, const StackTally& tally) {
  std::vector<std::pair<double, StackIndex>> order;
  double all = 0;
  for (const auto& [stack, amount] : tally) {
    order.emplace_back(-amount, stack);
    all += amount;
  }
  std::ranges::sort(order);
  Place place;
  place.all_stacks = order.size();
  place.via = stacks[order.front().second].via;
  for (const auto& [less, stack] : std::span(order).first(std::min(order.size(), kStacksOfASite)))
    place.stacks.push_back({stacks[stack].frames, all > 0 ? -less / all : 0});
  return place;
}

std::size_t site_among(std::span<const Frame> frames) {
  const auto at = [&frames](auto frame) { return static_cast<std::size_t>(frame - frames.begin()); };
  // An interpreter's own functions are no library's, but the program is what it interprets.
  const auto interpreted = std::ranges::find_if(frames, &Frame::is_runtime_code);
  if (interpreted != frames.end()) return at(interpreted);
  const auto own = std::ranges::find_if_not(frames, is_library_frame);
  if (own != frames.end()) return at(own);
  for (std::size_t i = frames.size(); i-- > 0;)
    if (!is_system_module(frames[i])) return i;
  return 0;
}

bool is_same_site(const Frame& one, const Frame& other) {
  return one.function == other.function && one.file == other.file && one.line == other.line && one.module == other.module;
}

bool is_library_frame(const Frame& frame) {
  const std::string_view name = qualified_name(frame.function);
  // Only what was inlined is what its line says: a function of the program's own may have a library's code in it.
  return is_system_module(frame) || (frame.inlined && is_library_source(frame)) || begins_with_any(name, kLibraryNames) ||
         std::ranges::find(kAllocationNames, name) != kAllocationNames.end();
}

}  // namespace freehold::doctor
