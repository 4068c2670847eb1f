// The recorded runs: where the probe writes, and what came of it. The folder is removed at the end, unless it is to be kept.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "freehold/doctor/profile.hpp"
#include "freehold/doctor/site_trace.hpp"
#include "freehold/doctor/symbols.hpp"
#include "freehold/doctor/trial.hpp"
#include "freehold/doctor/verdict.hpp"

namespace freehold::cli::doctor {

class Recordings {
 public:
  // `keep`: the folder for them, which is made if need be and must be empty; empty: a temporary one. Throws Failure.
  explicit Recordings(const std::string& keep);
  Recordings(const Recordings&) = delete;
  Recordings& operator=(const Recordings&) = delete;
  ~Recordings();

  // Lets a run be recorded under `name`.
  void prepare(const std::string& name, const std::string& probe, freehold::doctor::Surroundings& surroundings);
  struct Read {
    std::shared_ptr<const freehold::doctor::Attribution> attribution;  // null: nothing was recorded
    std::vector<freehold::doctor::SiteTrace> traces;                   // of the hottest sites of one size
    std::shared_ptr<const freehold::doctor::Profile> profile;          // whole stacks
  };
  // What was recorded under `name`, the names of the program's functions looked up. Notes say what could not be read.
  [[nodiscard]] Read read(const std::string& name, std::vector<std::string>& notes) const;
  // The function and line of an instruction that was sampled. `maps`: of that run, as in /proc/PID/maps.
  [[nodiscard]] freehold::doctor::Frame frame_at(const std::string& maps, std::uint64_t address) const;

 private:
  std::filesystem::path folder_;
  bool keep_ = false;
};

}  // namespace freehold::cli::doctor
