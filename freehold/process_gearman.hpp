// SPDX-License-Identifier: MIT
// Freehold's process pool beyond one machine: the same tasks and results over Gearman job servers.
//
//   #include "freehold/process_gearman.hpp"
//
//   freehold::GearmanPool pool({.servers = {"one:4730", "two:4730"}});
//   freehold::process::Result result = pool.call("some input");
//
// docs/process-gearman.md has the setup. Link freehold::process_gearman, which needs libgearman (FREEHOLD_BUILD_GEARMAN).
#pragma once
#include "freehold/base/cxx20.hpp"
#include "freehold/process.hpp"
#include "freehold/process/gearman/gearman_pool.hpp"
