// SPDX-License-Identifier: MIT
// Confines a worker to the rights that its pool gives it: files below some folders only (Landlock), no sockets (seccomp), no
// programs that gain rights (no_new_privs). The worker calls confine() before it loads the component, and its children
// inherit the limits. If the kernel refuses, the worker ends with WorkerExit::kNotConfined.
//
// Threads: confine() limits the calling thread and the processes that it starts.
#pragma once
#include <string>

#include "freehold/process/confinement.hpp"

namespace freehold::process {

// The rights as the value of the environment variable that a worker gets, and back.
inline constexpr const char* kConfineVariable = "FREEHOLD_CONFINE";
[[nodiscard]] std::string text_of(const Confinement& confinement);
[[nodiscard]] Confinement confinement_of(const std::string& text);

// Returns an errno, and the part of the kernel that refused.
[[nodiscard]] int confine(const Confinement& confinement, const char*& part) noexcept;

}  // namespace freehold::process
