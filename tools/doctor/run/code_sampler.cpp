// SPDX-License-Identifier: MIT
#include "tools/doctor/run/code_sampler.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <utility>
#include <vector>

#include "tools/doctor/facts/allocator_code.hpp"
#include "tools/live/process.hpp"

namespace freehold::doctor {
namespace {

constexpr std::array kRuntimes{"libc.so", "libc-", "libpthread", "ld-linux"};
constexpr std::size_t kCodeBytes = 64;  // on either side of an instruction

Instruction instruction_at(const std::string& file, std::uint64_t offset) {
  std::ifstream in(file, std::ios::binary);
  const std::uint64_t begin = offset > kCodeBytes ? offset - kCodeBytes : 0;
  std::array<std::uint8_t, 2 * kCodeBytes> code{};
  in.seekg(static_cast<std::streamoff>(begin));
  in.read(reinterpret_cast<char*>(code.data()), code.size());
  return instruction_in(std::span(code.data(), static_cast<std::size_t>(in.gcount())), offset - begin);
}

CodeOrigin origin_of(CodeKind kind, const std::string& file) {
  if (kind == CodeKind::kMalloc || kind == CodeKind::kOwnAllocator) return CodeOrigin::kAllocator;
  if (kind == CodeKind::kMallocLock) return CodeOrigin::kPrivateLock;
  if (kind == CodeKind::kTeam) return CodeOrigin::kTeam;
  const std::string name = file.substr(file.rfind('/') + 1);
  const auto is_part = [&name](const char* library) { return name.starts_with(library); };
  if (std::ranges::none_of(kRuntimes, is_part)) return CodeOrigin::kProgram;
  if (kind == CodeKind::kLock) return CodeOrigin::kLock;
  return kind == CodeKind::kWait ? CodeOrigin::kRuntimeWait : CodeOrigin::kRuntime;
}

}  // namespace

void CodeSampler::read_maps() {
  const std::string text = live::maps_of(root_);
  if (text.empty()) return;  // it has ended
  maps_ = text;
  for (live::CodeMapping& mapping : live::code_mappings(text)) mappings_[mapping.begin] = std::move(mapping);
}

const live::CodeMapping* CodeSampler::mapping_of(std::uint64_t address) const {
  auto next = mappings_.upper_bound(address);
  if (next == mappings_.begin()) return nullptr;
  --next;
  return address < next->second.end ? &next->second : nullptr;
}

void CodeSampler::look() {
  const std::vector<pid_t> family = live::family_of(root_);
  sampler_.look(family);
  lock_sleepers_.look(family);
  bool is_new = maps_.empty();
  sampler_.drain([&](std::uint64_t address) {
    ++counts_[address];
    is_new = is_new || mapping_of(address) == nullptr;
  });
  if (is_new) read_maps();
}

CodeSamples CodeSampler::samples() {
  sampler_.drain([this](std::uint64_t address) { ++counts_[address]; });
  CodeSamples samples;
  samples.maps = maps_;
  samples.lock_sleepers = lock_sleepers_.mean();
  samples.lock_sleeps = lock_sleepers_.share_of_sleeps();
  std::vector<live::CodeMapping> mappings;
  for (const auto& [begin, mapping] : mappings_) mappings.push_back(mapping);
  const AllocatorCode allocators(mappings, "");
  for (const auto& [address, count] : counts_) {
    const double seconds = kPeriod_s * static_cast<double>(count);
    samples.samples += count;
    const live::CodeMapping* const mapping = mapping_of(address);
    if (mapping == nullptr) {
      samples.unknown_s += seconds;
      continue;
    }
    const std::uint64_t offset = address - mapping->begin + mapping->offset;
    CodeTime& time = samples.places[{mapping->file, offset}];
    if (time.seconds == 0) time.instruction = instruction_at(mapping->file, offset);
    time.seconds += seconds;
    time.origin = origin_of(allocators.kind_of(address), mapping->file);
    time.address = address;
  }
  return samples;
}

}  // namespace freehold::doctor
