#include "cli/doctor/recordings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>

#include "cli/support/failure.hpp"
#include "freehold/doctor/attribution.hpp"

namespace freehold::cli::doctor {
namespace {
namespace fs = std::filesystem;
using freehold::doctor::Evidence;
using freehold::doctor::Recording;
using freehold::doctor::Symbols;

fs::path made(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw Failure(kExitRefused, fmt::format("cannot make {}: {}", printable(folder.string()), error.message()));
  return fs::absolute(folder);
}

fs::path temporary_folder() {
  std::error_code error;
  fs::path base = fs::temp_directory_path(error);
  if (error) base = "/tmp";
  std::string pattern = base / "freehold-doctor-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr)
    throw Failure(kExitRefused, fmt::format("no folder for recordings in {}: {}; set TMPDIR", printable(base.string()),
                                            error_text(errno)));
  return pattern;
}

// A site is replayed within a second or two.
constexpr std::size_t kReplayedSteps = 400'000;

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

Recordings::Recordings(const std::string& keep) : keep_(!keep.empty()) {
  folder_ = keep_ ? made(keep) : temporary_folder();
  if (keep_ && !fs::is_empty(folder_))
    throw Failure(kExitRefused, fmt::format("--keep-recording: {} is not empty", printable(keep)));
}

Recordings::~Recordings() {
  std::error_code ignored;
  if (!keep_) fs::remove_all(folder_, ignored);
}

void Recordings::prepare(const std::string& name, const std::string& probe, freehold::doctor::Surroundings& surroundings) {
  surroundings.preload.insert(surroundings.preload.begin(), probe);
  surroundings.environment.emplace_back("FREEHOLD_PROBE_DIRECTORY", made(folder_ / name).string());
}

Recordings::Read Recordings::read(const std::string& name, std::vector<std::string>& notes) const {
  std::vector<Recording> recordings;
  std::vector<std::unique_ptr<Symbols>> symbols;
  for (const fs::path& trace : traces_in(folder_ / name)) {
    freehold::doctor::NoRecording no;
    auto recording = freehold::doctor::read_recording(trace, no);
    if (!recording) {
      notes.push_back(fmt::format("A process's recording could not be read: {}.", no.why));
      continue;
    }
    fs::path maps = trace;
    symbols.push_back(std::make_unique<Symbols>(maps.replace_extension(".maps")));
    recordings.push_back(std::move(*recording));
  }
  if (recordings.empty()) return {};
  std::vector<Evidence> processes;
  for (std::size_t i = 0; i < recordings.size(); ++i)
    processes.push_back(
        {recordings[i], [&names = *symbols[i]](std::uint64_t address) -> const auto& { return names.frames(address); }});
  Read read;
  read.attribution = std::make_shared<const freehold::doctor::Attribution>(freehold::doctor::attribution_of(processes));
  read.profile = std::make_shared<const freehold::doctor::Profile>(freehold::doctor::profile_of(processes));
  read.traces = freehold::doctor::site_traces_of(processes, *read.attribution, {.steps = kReplayedSteps});
  return read;
}

freehold::doctor::Frame Recordings::frame_at(const std::string& maps, std::uint64_t address) const {
  const fs::path file = folder_ / "sampled.maps";
  std::ofstream(file) << maps;
  Symbols symbols(file);
  return symbols.frames(address + 1).front();  // Symbols takes return addresses, which lie behind their call
}

}  // namespace freehold::cli::doctor
