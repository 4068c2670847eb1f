// SPDX-License-Identifier: MIT
// freehold-gearman-worker: a machine that works for Gearman job servers (gearman_pool.hpp). SIGTERM or SIGINT ends it, with
// status 0; it ends with status 1 when its workers cannot be started.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "freehold/process/gearman/gearman_pool.hpp"

namespace {

constexpr const char* kUsage =
    "Usage: freehold-gearman-worker -s HOST[:PORT] [-s ...] [OPTION...] COMPONENT.so\n"
    "\n"
    "Runs the jobs of Gearman job servers in worker processes on this machine, by the component that the shared object\n"
    "exports. SIGTERM or SIGINT ends it.\n"
    "\n"
    "Options:\n"
    "  -s HOST[:PORT]  a job server; every one that is named is used\n"
    "  -f FUNCTION     the component's name among the servers' jobs (freehold)\n"
    "  -n SLOTS        worker processes (two for each CPU)\n"
    "  -a ATTEMPTS     runs of a task whose workers die (3)\n"
    "  -t TASKS        replace a worker after this many tasks (never)\n"
    "  -m MIB          kill a worker, even in a task, that holds this much memory (never)\n"
    "  -b BYTES        maximum length of an input, and of an output (1048576)\n"
    "  -w PROGRAM      the worker program (freehold-worker)\n"
    "  --help          print this and exit\n";

bool parse(int argc, char** argv, freehold::GearmanSupervisorOptions& options) {
  const auto number = [] { return std::strtoull(optarg, nullptr, 10); };
  for (int option = 0; (option = ::getopt(argc, argv, "s:f:n:a:t:m:b:w:")) != -1;) {
    switch (option) {
      case 's': options.servers.emplace_back(optarg); break;
      case 'f': options.function = optarg; break;
      case 'n': options.workers.max_workers = static_cast<unsigned>(number()); break;
      case 'a': options.workers.max_attempts = static_cast<unsigned>(number()); break;
      case 't': options.workers.max_tasks = number(); break;
      case 'm': options.workers.kill_rss_bytes = number() << 20; break;
      case 'b': options.workers.max_input_bytes = options.workers.max_output_bytes = number(); break;
      case 'w': options.workers.worker_program = optarg; break;
      default: return false;
    }
  }
  if (optind + 1 != argc) return false;
  options.workers.component = argv[optind];
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--help") == 0) return std::fputs(kUsage, stdout) < 0;
  freehold::GearmanSupervisorOptions options;
  if (!parse(argc, argv, options)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  sigset_t ends;
  ::sigemptyset(&ends);
  ::sigaddset(&ends, SIGTERM);
  ::sigaddset(&ends, SIGINT);
  ::sigprocmask(SIG_BLOCK, &ends, nullptr);
  const freehold::GearmanSupervisor supervisor(options);
  constexpr timespec kPollInterval{0, 100'000'000};
  while (supervisor.ok())
    if (::sigtimedwait(&ends, nullptr, &kPollInterval) > 0) return 0;
  std::fprintf(stderr, "freehold-gearman-worker: %s\n", supervisor.error().c_str());
  return 1;
}
