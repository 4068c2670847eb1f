// SPDX-License-Identifier: MIT
// The worker of `freehold workers --exec`: runs the command of each task by /bin/sh and gathers its output. freehold-worker
// --exec is the program. A command runs in the worker's process group, which ends with the worker.
//
//   input    the job's number as text, a zero byte, the command
//   output   CommandResult, then the command's standard output, then its standard error
#pragma once
#include <cstddef>
#include <cstdint>

namespace freehold::process {

struct CommandResult {
  std::int32_t status = 0;         // from waitpid
  std::int32_t started_errno = 0;  // why it could not be started, or 0
  std::uint64_t begin = 0;         // nanoseconds since 1970
  std::uint64_t runtime = 0;       // nanoseconds
  std::uint64_t out_bytes = 0, err_bytes = 0;
};
inline constexpr const char* kExecWorker = "--exec";  // instead of a component

// A component (component.h). Returns kJobTooLong if the command prints more than the output has room for.
inline constexpr int kJobTooLong = 1;
int run_command_job(const void* input, std::size_t input_bytes, void* output, std::size_t capacity,
                    std::size_t* output_bytes) noexcept;

}  // namespace freehold::process
