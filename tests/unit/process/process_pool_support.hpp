// SPDX-License-Identifier: MIT
// Options, waiting, and a folder with a copy of the component, for all tests of the process pool.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "freehold/process.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/proc.hpp"

namespace freehold::process_test {

using namespace std::chrono_literals;
using process::ExitReason;
using process::Failure;
using process::FailureKind;
using process::Future;
using process::Result;
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
// A folder with a copy of the component.
class Deployed {
 public:
  [[nodiscard]] std::string component() const { return path("component.so"); }
  [[nodiscard]] std::string path(const char* name) const { return folder_ / name; }
  void put() const {
    std::filesystem::copy_file(kComponent, component() + ".new");
    std::filesystem::rename(component() + ".new", component());
  }
  void remove() const { std::filesystem::remove(component()); }

 private:
  const test::Folder folder_;
};

}  // namespace freehold::process_test
