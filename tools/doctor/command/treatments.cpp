// SPDX-License-Identifier: MIT
#include "tools/doctor/command/treatments.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "tools/doctor/facts/own_malloc.hpp"
#include "tools/launch/program.hpp"
#include "tools/support/arguments.hpp"
#include "tools/support/failure.hpp"
#include "tools/support/file_descriptor.hpp"
#include "tools/support/library.hpp"

namespace freehold::doctor::command {
namespace {
namespace fs = std::filesystem;

constexpr std::string_view kArenas = "arenas";
constexpr std::string_view kThresholds = "thresholds";
constexpr std::string_view kPadded = "padded";

bool has_malloc(const std::string& file) {
  const FileDescriptor descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  return descriptor && exports_function(descriptor.get(), "malloc");
}

// Libraries have no dynamic linker to ask for, except libc, which can be run.
bool is_program(const std::string& file) {
  const FileDescriptor descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  return descriptor && !read_elf(descriptor.get()).interpreter.empty();
}

// The C library and the dynamic linker, which has another malloc for the time before.
bool is_libc(const std::string& file) {
  const std::string name = fs::path(file).filename();
  return name.starts_with("libc.so") || name.starts_with("libc-") || name.starts_with("ld-linux") || name.starts_with("ld-");
}

Variant capped_arenas(unsigned cpus) {
  const unsigned arenas = std::max(1u, cpus);
  return {.treatment = Treatment::kCappedArenas,
          .name = fmt::format("glibc, {} arena{}", arenas, arenas == 1 ? "" : "s"),
          .preload = {},
          .environment = {{"MALLOC_ARENA_MAX", std::to_string(arenas)}}};
}

// The greatest threshold that glibc accepts; what is freed stays up to a gigabyte.
Variant high_thresholds() {
  return {.treatment = Treatment::kHighThresholds,
          .name = "glibc, high thresholds",
          .preload = {},
          .environment = {{"MALLOC_MMAP_THRESHOLD_", "33554432"}, {"MALLOC_TRIM_THRESHOLD_", "1073741824"}}};
}

Variant preloaded(Treatment treatment, const std::string& name, const std::string& library) {
  return {.treatment = treatment, .name = name, .preload = {library}};
}

// A missing treatment is left out with a note, unless it was asked for.
void add_if_there(std::vector<Variant>& variants, const std::string& name, std::vector<std::string>& notes) {
  try {
    if (name == kPadded)
      variants.push_back(preloaded(Treatment::kPadded, name, find_own_library("libfreehold-pad.so")));
    else
      variants.push_back(
          preloaded(name == "freehold" ? Treatment::kFreehold : Treatment::kPeer, name, find_allocator(name).library));
  } catch (const Failure& failure) {
    if (name == "freehold" || name == kPadded) notes.push_back(fmt::format("Without {}: {}.", name, failure.what()));
  }
}

Variant wished_variant(const std::string& word, unsigned cpus) {
  if (word == kArenas) return capped_arenas(cpus);
  if (word == kThresholds) return high_thresholds();
  if (word == kPadded) return preloaded(Treatment::kPadded, word, find_own_library("libfreehold-pad.so"));
  const auto switches = doctor::known_switches();
  if (std::ranges::find(switches, word) != switches.end()) {
    const std::size_t equals = word.find('=');
    return {.treatment = Treatment::kPeer,
            .name = word,
            .preload = {},
            .environment = {{word.substr(0, equals), word.substr(equals + 1)}}};
  }
  const Allocator allocator = find_allocator(word);
  if (!has_malloc(allocator.library))
    throw Failure(kExitRefused, fmt::format("--allocators: {} has no malloc", printable(allocator.library)));
  return preloaded(word == "freehold" ? Treatment::kFreehold : Treatment::kPeer, allocator.name, allocator.library);
}

std::vector<Variant> wished_variants(const std::string& wished, unsigned cpus) {
  std::vector<Variant> variants;
  for (const std::string& word : split_list("--allocators", wished)) {
    if (word == "system") continue;  // is always there
    variants.push_back(wished_variant(word, cpus));
    const auto same = [&](const Variant& other) { return other.name == variants.back().name; };
    if (std::ranges::count_if(variants, same) > 1)
      throw Failure(kExitRefused, fmt::format("--allocators: the name '{}' is taken; give one of them another as NAME=PATH",
                                              printable(variants.back().name)));
  }
  return variants;
}

// ---- for the question of memory

// Often enough that what is free is given back before the next look at the program.
constexpr const char* kTrimEvery_ms = "20";

MemoryVariant arenas(unsigned count) {
  return {.treatment = count == 1 ? MemoryTreatment::kOneArena : MemoryTreatment::kPeer,
          .how = {.treatment = Treatment::kCappedArenas,
                  .name = fmt::format("glibc, {} arena{}", count, count == 1 ? "" : "s"),
                  .preload = {},
                  .environment = {{"MALLOC_ARENA_MAX", std::to_string(count)}}}};
}
MemoryVariant no_caches() {
  return {.treatment = MemoryTreatment::kNoCaches,
          .how = {.treatment = Treatment::kPeer,
                  .name = "glibc, no caches",
                  .preload = {},
                  .environment = {{"GLIBC_TUNABLES", "glibc.malloc.tcache_count=0"}}}};
}
MemoryVariant trimming() {
  return {.treatment = MemoryTreatment::kTrimmed,
          .how = {.treatment = Treatment::kPeer,
                  .name = "glibc, trimmed",
                  .preload = {find_own_library("libfreehold-pad.so")},
                  .environment = {{"FREEHOLD_TRIM_MS", kTrimEvery_ms}}}};
}
MemoryVariant library(const std::string& word) {
  const Allocator allocator = find_allocator(word);
  const bool is_freehold = word == "freehold";
  return {.treatment = is_freehold ? MemoryTreatment::kFreehold : MemoryTreatment::kPeer,
          .how = {.treatment = is_freehold ? Treatment::kFreehold : Treatment::kPeer,
                  .name = allocator.name,
                  .preload = {allocator.library}}};
}

std::vector<MemoryVariant> wished_memory_variants(const std::string& words) {
  std::vector<MemoryVariant> variants;
  for (const std::string& word : split_list("--allocators", words)) {
    if (word == "system") continue;
    if (word == "arenas")
      variants.push_back(arenas(1));
    else if (word == "caches")
      variants.push_back(no_caches());
    else if (word == "trimmed")
      variants.push_back(trimming());
    else
      variants.push_back(library(word));
  }
  return variants;
}

// All that are there. A note says what is missing of the command's own.
std::vector<MemoryVariant> all_memory_variants(std::vector<std::string>& notes) {
  std::vector<MemoryVariant> variants{arenas(1), arenas(2), no_caches()};
  const auto add = [&](const auto& make, bool is_own) {
    try {
      variants.push_back(make());
    } catch (const Failure& failure) {
      if (is_own) notes.push_back(fmt::format("Not everything was tried: {}.", failure.what()));
    }
  };
  add(trimming, true);
  add([] { return library("freehold"); }, true);
  for (const std::string& peer : known_peers()) add([&peer] { return library(peer); }, false);
  return variants;
}

}  // namespace

MallocOrigin malloc_origin(const std::set<std::string>& files) {
  MallocOrigin origin;
  for (const std::string& file : files) {
    if (is_libc(file) || !has_malloc(file)) continue;
    origin = {.glibc = false, .built_in = is_program(file), .file = file};
    if (origin.built_in) break;  // comes before any library
  }
  return origin;
}

std::vector<Variant> variants_of(const std::optional<std::string>& wished, const MallocOrigin& origin, unsigned cpus,
                                 std::vector<std::string>& notes) {
  std::vector<Variant> others;
  if (wished) {
    others = wished_variants(*wished, cpus);
  } else {
    others.push_back(capped_arenas(cpus));
    others.push_back(high_thresholds());
    for (const std::string& name : {std::string(kPadded), std::string("freehold")}) add_if_there(others, name, notes);
    for (const std::string& name : known_peers()) add_if_there(others, name, notes);
  }
  std::vector<Variant> variants{{.treatment = Treatment::kNone, .name = "system", .preload = {}}};
  if (!origin.glibc) {
    const std::string file = printable(fs::path(origin.file).filename().string());
    variants.front().name = "its own";
    if (origin.built_in) {
      notes.push_back(
          fmt::format("{} has its own malloc built in, which no library can replace from outside: nothing else was "
                      "tried. Link it with freehold::malloc instead.",
                      file));
      return variants;
    }
    notes.push_back(fmt::format("The program brings its own malloc, that of {}; the others were put before it.", file));
    std::erase_if(others, [](const Variant& variant) {
      return variant.treatment == Treatment::kCappedArenas || variant.treatment == Treatment::kHighThresholds;
    });
  }
  variants.insert(variants.end(), others.begin(), others.end());
  return variants;
}

std::string find_probe(const MallocOrigin& origin, std::vector<std::string>& notes) {
  if (origin.built_in) {
    notes.push_back("Nothing was recorded: calls of a malloc that is built into the program cannot be seen from outside.");
    return {};
  }
  try {
    return find_own_library("libfreehold-probe.so");
  } catch (const Failure& failure) {
    notes.push_back(fmt::format("Nothing was recorded: {}.", failure.what()));
    return {};
  }
}

MemoryTools memory_tools_for(const std::set<std::string>& files, const std::optional<std::string>& allocators,
                             std::vector<std::string>& notes) {
  const MallocOrigin origin = malloc_origin(files);
  MemoryTools tools;
  tools.is_glibc = origin.glibc;
  tools.name = origin.glibc ? "system" : "its own";
  tools.probe = find_probe(origin, notes);
  if (origin.built_in) {
    notes.push_back(fmt::format("{} has its own malloc built in: no other was tried.", printable(origin.file)));
    return tools;
  }
  tools.variants = allocators ? wished_memory_variants(*allocators) : all_memory_variants(notes);
  if (origin.glibc) return tools;
  notes.push_back(fmt::format("The program brings its own malloc, that of {}: switches of glibc's were left out.",
                              printable(origin.file)));
  std::erase_if(tools.variants, [](const MemoryVariant& variant) { return variant.how.name.starts_with("glibc"); });
  return tools;
}

}  // namespace freehold::doctor::command
