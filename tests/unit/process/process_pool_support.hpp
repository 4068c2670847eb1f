// SPDX-License-Identifier: MIT
// Options, waiting, and a folder with a copy of the component, for all tests of the process pool.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "freehold/process.hpp"
#include "tests/support/proc.hpp"

namespace freehold::process_test {

using namespace std::chrono_literals;
using process::ExitReason;
using process::Failure;
using process::FailureKind;
using process::Future;
using process::Result;
using process::SubmitError;
using test::comes_true;
using test::open_descriptors;

// The build made these: a component that misbehaves on command, and the program that workers run. Defined in
// process_pool_test.cpp, so that this header compiles alone.
extern const char* const kComponent;
extern const char* const kWorkerProgram;

inline ProcessPoolOptions options() {
  ProcessPoolOptions how;
  how.component = kComponent;
  how.worker_program = kWorkerProgram;
  how.max_workers = 2;
  how.max_input_bytes = how.max_output_bytes = 8192;
  return how;
}
inline std::uint64_t ended(const ProcessPool& pool, ExitReason why) {
  return pool.stats().workers.ended[static_cast<std::size_t>(why)];
}
// A folder with a copy of the component, gone afterwards.
class Deployed {
 public:
  explicit Deployed(const char* name) : folder_(testing::TempDir() + "freehold_" + name + std::to_string(::getpid())) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
  }
  ~Deployed() { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string component() const { return folder_ + "/component.so"; }
  [[nodiscard]] std::string path(const char* name) const { return folder_ + "/" + name; }
  void put() const {
    std::filesystem::copy_file(kComponent, component() + ".new");
    std::filesystem::rename(component() + ".new", component());
  }
  void remove() const { std::filesystem::remove(component()); }

 private:
  std::string folder_;
};

}  // namespace freehold::process_test
