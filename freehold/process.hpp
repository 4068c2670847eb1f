// SPDX-License-Identifier: MIT
// Freehold's process pool: runs a component that crashes or does not scale in supervised worker processes.
//
//   #include "freehold/process.hpp"
//
//   freehold::ProcessPool pool({.component = "./slow.so", .run_timeout = std::chrono::seconds(5)});
//   freehold::process::Result result = pool.call("some input");      // or submit(), from any thread
//   if (result.ok()) use(result.text()); else complain(text(result.error()));
//
// The component is a shared object with one C function (freehold/component.h), or a worker program (process::Worker). Other
// processes of the same user may use the pool too (process::AttachedClient, process::NamedSocket). From C, and from every
// language that can load a shared library: freehold/process.h. Beyond one machine: freehold/process_gearman.hpp. The guide
// is docs/process.md. Link freehold::process.
#pragma once
#include "freehold/base/cxx20.hpp"
#include "freehold/component.h"
#include "freehold/process/client/attached_client.hpp"
#include "freehold/process/client/future.hpp"
#include "freehold/process/named_socket.hpp"
#include "freehold/process/process_pool.hpp"
#include "freehold/process/supervisor/pool_events.hpp"
#include "freehold/process/supervisor/pool_stats.hpp"
#include "freehold/process/table/task.hpp"
#include "freehold/process/worker/confinement.hpp"
#include "freehold/process/worker/worker.hpp"
