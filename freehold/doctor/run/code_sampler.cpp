// SPDX-License-Identifier: MIT
#include "freehold/doctor/run/code_sampler.hpp"

#include <array>
#include <fstream>
#include <iterator>
#include <sstream>

#include "freehold/doctor/run/watch.hpp"

namespace freehold::doctor {
namespace {

constexpr std::size_t kCodeBytes = 64;  // on either side of an instruction

Instruction instruction_at(const std::string& file, std::uint64_t offset) {
  std::ifstream in(file, std::ios::binary);
  const std::uint64_t begin = offset > kCodeBytes ? offset - kCodeBytes : 0;
  std::array<std::uint8_t, 2 * kCodeBytes> code{};
  in.seekg(static_cast<std::streamoff>(begin));
  in.read(reinterpret_cast<char*>(code.data()), code.size());
  return instruction_in(std::span(code.data(), static_cast<std::size_t>(in.gcount())), offset - begin);
}

// What an atomic operation in these does is known from elsewhere: waits for locks are recorded, malloc's are its own.
bool is_runtime(const std::string& file) {
  const std::string name = file.substr(file.rfind('/') + 1);
  for (const char* const part : {"libc.so", "libc-", "libpthread", "ld-linux", "libjemalloc", "libtcmalloc", "libmimalloc",
                                 "libtbbmalloc", "libfreehold"}) {
    if (name.find(part) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

void CodeSampler::read_maps() {
  std::ifstream in("/proc/" + std::to_string(root_) + "/maps");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (text.empty()) return;  // it has ended
  maps_ = text;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::uint64_t begin = 0, end = 0, offset = 0;
    char dash = 0;
    std::string rights, device, inode, file;
    words >> std::hex >> begin >> dash >> end >> rights >> offset >> device >> inode >> std::ws;
    std::getline(words, file);  // to the end of the line: a path may have blanks
    if (rights.size() > 2 && rights[2] == 'x' && file.starts_with('/')) mappings_[begin] = {end, offset, file};
  }
}

const CodeSampler::Mapping* CodeSampler::mapping_of(std::uint64_t address, std::uint64_t& begin) const {
  auto next = mappings_.upper_bound(address);
  if (next == mappings_.begin()) return nullptr;
  --next;
  begin = next->first;
  return address < next->second.end ? &next->second : nullptr;
}

void CodeSampler::look() {
  sampler_.look(family_of(root_));
  bool is_new = maps_.empty();
  sampler_.drain([&](std::uint64_t address) {
    std::uint64_t begin = 0;
    ++counts_[address];
    is_new = is_new || mapping_of(address, begin) == nullptr;
  });
  if (is_new) read_maps();
}

CodeSamples CodeSampler::samples() {
  sampler_.drain([this](std::uint64_t address) { ++counts_[address]; });
  CodeSamples samples;
  samples.maps = maps_;
  for (const auto& [address, count] : counts_) {
    const double seconds = kPeriod_s * static_cast<double>(count);
    samples.samples += count;
    std::uint64_t begin = 0;
    const Mapping* const mapping = mapping_of(address, begin);
    if (mapping == nullptr) {
      samples.unknown_s += seconds;
      continue;
    }
    const std::uint64_t offset = address - begin + mapping->offset;
    CodeTime& time = samples.places[{mapping->file, offset}];
    if (time.seconds == 0) time.instruction = instruction_at(mapping->file, offset);
    time.seconds += seconds;
    time.of_runtime = is_runtime(mapping->file);
    time.address = address;
  }
  return samples;
}

}  // namespace freehold::doctor
