// SPDX-License-Identifier: MIT
#include "tools/doctor/run/recordings.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "tools/doctor/facts/attribution.hpp"
#include "tools/doctor/run/refusal.hpp"

namespace freehold::doctor {
namespace {
namespace fs = std::filesystem;

fs::path made(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw Refused(Refusal::kNoFolder, folder.string(), error.message());
  return fs::absolute(folder);
}

fs::path temporary_folder() {
  std::error_code error;
  fs::path base = fs::temp_directory_path(error);
  if (error) base = "/tmp";
  std::string pattern = base / "freehold-doctor-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) throw Refused(Refusal::kNoTemporaryFolder, base.string(), std::strerror(errno));
  return pattern;
}

std::vector<fs::path> traces_in(const fs::path& folder) {
  std::vector<fs::path> traces;
  std::error_code error;
  for (const auto& file : fs::directory_iterator(folder, error)) {
    if (file.path().extension() == ".trace") traces.push_back(file.path());
  }
  std::ranges::sort(traces);
  return traces;
}

}  // namespace

Recordings::Recordings() : folder_(temporary_folder()) {}

Recordings::~Recordings() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

void Recordings::prepare(const std::string& name, const std::string& probe, LaunchOptions& options) {
  options.preload.insert(options.preload.begin(), probe);
  options.environment.emplace_back("FREEHOLD_PROBE_DIRECTORY", made(folder_ / name).string());
}

bool Recordings::visit(const std::string& name, std::vector<std::string>& unreadable,
                       const std::function<void(std::span<const Evidence>)>& f) const {
  std::vector<Recording> recordings;
  std::vector<std::unique_ptr<Symbols>> symbols;
  for (const fs::path& trace : traces_in(folder_ / name)) {
    NoRecording no;
    auto recording = read_recording(trace, no);
    if (!recording) {
      unreadable.push_back(no.why);
      continue;
    }
    fs::path maps = trace;
    symbols.push_back(std::make_unique<Symbols>(maps.replace_extension(".maps")));
    recordings.push_back(std::move(*recording));
  }
  if (recordings.empty()) return false;
  std::vector<Evidence> processes;
  for (std::size_t i = 0; i < recordings.size(); ++i)
    processes.push_back(
        {recordings[i], [&names = *symbols[i]](std::uint64_t address) -> const auto& { return names.frames(address); }});
  f(processes);
  return true;
}

Recordings::Read Recordings::read(const std::string& name, std::vector<std::string>& unreadable) const {
  Read read;
  visit(name, unreadable, [&read](std::span<const Evidence> processes) {
    read.attribution = std::make_shared<const Attribution>(attribution_of(processes));
    read.profile = std::make_shared<const Profile>(profile_of(processes));
  });
  return read;
}

Frame Recordings::frame_at(const std::string& maps, std::uint64_t address) const {
  const fs::path file = folder_ / "sampled.maps";
  std::ofstream(file) << maps;
  Symbols symbols(file);
  return symbols.frames(address + 1).front();  // Symbols takes return addresses, which lie behind their call
}

}  // namespace freehold::doctor
