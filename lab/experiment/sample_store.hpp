// SPDX-License-Identifier: MIT
// Finished measurements in a file, from which a long experiment goes on after Ctrl-C. A measurement is one line, a
// key and the bytes of the report, and is written at once. The first line names the machine and the build: reports of others
// would not be comparable.
#pragma once
#include <cstring>
#include <map>
#include <optional>
#include <string>

#include "tools/support/file_descriptor.hpp"

namespace freehold::lab {

class SampleStore {
 public:
  // Reads what the file has, or begins it. Throws Failure if it belongs to something else or cannot be written.
  explicit SampleStore(const std::string& file);

  // None: it is not there, or has another form.
  template <class Report>
  [[nodiscard]] std::optional<Report> find(const std::string& key) const {
    const auto found = all_.find(key);
    Report report;
    if (found == all_.end() || found->second.size() != sizeof report) return {};
    std::memcpy(static_cast<void*>(&report), found->second.data(), sizeof report);
    return report;
  }
  // Throws Failure if the file cannot be written any more.
  template <class Report>
  void add(const std::string& key, const Report& report) {
    add_bytes(key, {reinterpret_cast<const char*>(&report), sizeof report});
  }

 private:
  void add_bytes(const std::string& key, const std::string& bytes);
  void write(const std::string& text);

  std::string name_;
  std::map<std::string, std::string> all_;
  FileDescriptor file_;
};

}  // namespace freehold::lab
