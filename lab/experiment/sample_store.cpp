// SPDX-License-Identifier: MIT
#include "lab/experiment/sample_store.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "tools/support/failure.hpp"
#include "tools/support/machine.hpp"
#include "tools/support/output_file.hpp"

namespace freehold::lab {
namespace {

std::string first_line() {
  const Machine machine = this_machine();
  const auto built = std::filesystem::last_write_time("/proc/self/exe").time_since_epoch().count();
  return fmt::format("Measurements of freehold-lab, build {}, on {}, {} CPUs, {}", built, machine.cpu_model, machine.cpus,
                     machine.system);
}

std::string hex_of(const std::string& bytes) {
  std::string hex;
  for (const char byte : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return hex;
}

std::string bytes_of(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

}  // namespace

SampleStore::SampleStore(const std::string& file) : name_(file) {
  file_ = open_log(file);
  std::ifstream in("/proc/self/fd/" + std::to_string(file_.get()));
  std::string line;
  if (std::getline(in, line) && line != first_line())
    throw Failure(kExitRefused, fmt::format("{}: it has no measurements of this machine and build: it begins with '{}'",
                                            printable(file), printable(line)));
  const bool is_new = line.empty();
  while (std::getline(in, line)) {
    const auto tab = line.find('\t');  // a line that was cut short has none, or a report that is too short
    if (tab != line.npos) all_[line.substr(0, tab)] = bytes_of(line.substr(tab + 1));
  }
  write((is_new ? first_line() : "") + '\n');  // ends a line that was cut short, too
}

void SampleStore::add_bytes(const std::string& key, const std::string& bytes) {
  all_[key] = bytes;
  write(key + '\t' + hex_of(bytes) + '\n');
}

void SampleStore::write(const std::string& text) {
  if (const int error = write_all(file_.get(), text); error != 0)
    throw Failure(kExitRefused, fmt::format("cannot write {}: {}", printable(name_), error_text(error)));
}

}  // namespace freehold::lab
