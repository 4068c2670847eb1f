// SPDX-License-Identifier: MIT
#include "sim/engine/counted_engine.hpp"

#include <sys/mman.h>

#include <memory>
#include <stdexcept>

namespace freehold::sim {
namespace {

constexpr std::size_t kCapacityBytes = std::size_t{1} << 36;  // room for 384 cores that hold blocks of 1 MiB

}  // namespace

CountedPages::~CountedPages() {
  for (const Mapping& mapping : mappings_) ::munmap(reinterpret_cast<void*>(mapping.begin), mapping.bytes);
}

// The arena's tables and memory, as one mapping.
void* CountedPages::place(unsigned attempt, std::size_t bytes, std::size_t alignment) noexcept {
  if (attempt != 0) return nullptr;
  void* const memory = map(bytes + alignment);
  if (memory == nullptr) return nullptr;
  mappings_.back().what = "arena";
  return reinterpret_cast<void*>(base::align_up(reinterpret_cast<std::uintptr_t>(memory), alignment));
}

void* CountedPages::map(std::size_t bytes) noexcept {
  coherent::called_system();
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  ::madvise(memory, bytes, MADV_NOHUGEPAGE);  // stamps are few and far between
  mappings_.push_back({reinterpret_cast<std::uintptr_t>(memory), bytes, "records"});
  return memory;
}

bool CountedPages::unmap(void* address, std::size_t bytes) noexcept {
  coherent::called_system();
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  std::erase_if(mappings_, [begin](const Mapping& mapping) { return mapping.begin == begin; });
  return ::munmap(address, bytes) == 0;
}

CountedEngine::CountedEngine(unsigned cores) {
  alloc::ArenaSettings settings;
  settings.capacity_bytes = kCapacityBytes;
  settings.stripes = alloc::ArenaSettings::stripes_for(cores);
  settings.chunk_stripes = alloc::ArenaSettings::chunk_stripes_for(cores);
  if (!core_.init(pages_, settings, alloc::NativeConfig::budget_bytes(cores), cores))
    throw std::runtime_error("too little address space for a simulated engine");
}

bool CountedEngine::is_empty_and_sound() noexcept {
  const auto stats = std::make_unique<alloc::Stats>();
  core_.stats(*stats);
  bool empty = stats->threads == 0 && stats->run_bytes == 0 && stats->direct_bytes == 0;
  for (std::size_t c = 0; c < stats->class_count; ++c) empty &= stats->classes[c].slots == stats->classes[c].free_slots;
  return empty && core_.check_invariants();
}

std::ptrdiff_t CountedEngine::offset_in_core(std::uintptr_t address) const noexcept {
  const std::uintptr_t offset = address - reinterpret_cast<std::uintptr_t>(&core_);
  return offset < sizeof core_ ? static_cast<std::ptrdiff_t>(offset) : -1;
}

std::string_view CountedEngine::object_at(std::uintptr_t address) const noexcept {
  for (const auto& mapping : pages_.mappings())
    if (address - mapping.begin < mapping.bytes) return mapping.what;
  return offset_in_core(address) >= 0 ? "engine" : "elsewhere";
}

}  // namespace freehold::sim
