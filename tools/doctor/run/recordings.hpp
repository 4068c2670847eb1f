// SPDX-License-Identifier: MIT
// The recorded runs: where the probe writes, and what came of it. The folder is removed at the end.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tools/doctor/facts/call_sites.hpp"
#include "tools/doctor/facts/profile.hpp"
#include "tools/doctor/facts/symbols.hpp"
#include "tools/doctor/run/program.hpp"
#include "tools/doctor/verdict/verdict.hpp"

namespace freehold::doctor {

class Recordings {
 public:
  // Throws Refused.
  Recordings();
  Recordings(const Recordings&) = delete;
  Recordings& operator=(const Recordings&) = delete;
  ~Recordings();

  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_; }
  // Lets a run be recorded under `name`.
  void prepare(const std::string& name, const std::string& probe, LaunchOptions& options);
  struct Read {
    std::shared_ptr<const Attribution> attribution;  // null: nothing was recorded
    std::shared_ptr<const Profile> profile;          // whole stacks
  };
  // Calls f(processes), if anything was recorded under `name`; of each process its recording and the names of its functions,
  // which are gone afterwards. `unreadable`: as below. Returns whether it was called.
  bool visit(const std::string& name, std::vector<std::string>& unreadable,
             const std::function<void(std::span<const Evidence>)>& f) const;
  // Reads what was recorded under `name`, the names of the program's functions looked up. `unreadable`: why a process's
  // recording could not be read, for each such process.
  [[nodiscard]] Read read(const std::string& name, std::vector<std::string>& unreadable) const;
  // The function and line of an instruction that was sampled. `maps`: of that run, as in /proc/PID/maps.
  [[nodiscard]] Frame frame_at(const std::string& maps, std::uint64_t address) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace freehold::doctor
