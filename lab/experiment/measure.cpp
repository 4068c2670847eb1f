// SPDX-License-Identifier: MIT
#include "lab/experiment/measure.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <exception>

namespace freehold::cli {

int run_worker_main(const std::function<bool()>& work) try {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a measurement that nobody waits for any more is useless
  ::_exit(work() ? 0 : 1);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}

}  // namespace freehold::cli
