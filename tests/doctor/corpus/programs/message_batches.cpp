// SPDX-License-Identifier: MIT
// A loop takes 64 KiB for each of thirty messages, and frees all of them at the end of each turn.
// People saw two brk() calls for each turn in strace, and raised the threshold from which glibc trims: 2.5
// times as many messages.
#include "tests/doctor/corpus/programs/rebuilt.hpp"

int main(int argc, char** argv) {
  rebuilt::in_threads(argc, argv, [](unsigned, long turns) {
    std::vector<char*> messages(30);
    for (long turn = 0; turn < turns; ++turn) {
      for (char*& message : messages) {
        message = static_cast<char*>(std::malloc(64 << 10));
        for (int at = 0; at < 64 << 10; at += 4096) message[at] = 1;
      }
      for (char* const message : messages) std::free(message);
    }
  });
}
