// SPDX-License-Identifier: MIT
// freehold-worker COMPONENT.so: the worker program that loads a component from a shared object. Only a process pool starts
// it.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "freehold/process/worker/worker.hpp"
#include "freehold/process/worker/worker_protocol.hpp"

namespace {
constexpr const char* kUsage =
    "Usage: freehold-worker COMPONENT.so\n"
    "\n"
    "Runs the tasks of a process pool by the component that the shared object exports. Only a process pool can start it:\n"
    "freehold workers, or a program with freehold::ProcessPool.\n"
    "\n"
    "Options:\n"
    "  --help  print this and exit\n";
}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--help") == 0) return std::fputs(kUsage, stdout) < 0;
  using freehold::process::WorkerExit;
  freehold::process::Worker worker;
  if (!worker.ok() || argc != 2) {
    const bool by_pool = std::getenv(freehold::process::kWorkerVariable) != nullptr && argc == 2;
    std::fprintf(stderr, by_pool ? "freehold-worker: the pool is of another version of Freehold, or its table is damaged\n"
                                 : "freehold-worker: only a process pool can start it, as freehold-worker COMPONENT.so\n");
    return static_cast<int>(WorkerExit::kNoTable);
  }
  void* const object = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  void* const symbol = object != nullptr ? dlsym(object, FREEHOLD_COMPONENT_NAME) : nullptr;
  if (symbol == nullptr) {
    std::fprintf(stderr, "freehold-worker: %s\n", dlerror());
    return static_cast<int>(WorkerExit::kNoComponent);
  }
  return worker.run(reinterpret_cast<freehold_component*>(symbol));
}
