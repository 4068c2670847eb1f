// SPDX-License-Identifier: MIT
// C++ without a C++ library: operator new cannot throw, so it reports why it ends the process.
#include <unistd.h>

#include <csignal>
#include <cstddef>

#include "tests/linking/check.h"

namespace {
volatile std::size_t g_too_much = std::size_t{1} << 62;
}

int main() {
  std::signal(SIGABRT, [](int) { _exit(EXIT_SUCCESS); });
  for (int i = 0; i < 100; ++i) {
    char* volatile block = new char[100];
    delete[] block;
  }
  char* volatile block = new char[g_too_much];
  (void)block;
  CHECK(!"operator new returned");
}
