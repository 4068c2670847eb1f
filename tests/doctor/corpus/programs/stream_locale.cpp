// SPDX-License-Identifier: MIT
// Threads write numbers into string streams of their own, one for each number, with a locale that all of them copy.
// Every stream copies the global locale, whose references all threads count in one place; people found it by
// profiles and benchmarks.
// Mended: 2026-11-27: libstdc++ does not count the references of its first locale, so that the program of before had
// no cause and scaled (0.52 s with one thread, 0.30 s with two). It takes a lock to copy another global locale; so
// this program hands the locale to each stream.
// Seen: two threads take 1.1 s of CPU time for what takes one 0.65 s, and are 1.1 to 1.3 times as fast; half of the
// samples are in the locale's copies and their end; four futex calls in all.
#include <locale>
#include <sstream>

#include "tests/doctor/corpus/programs/rebuilt.hpp"

int main(int argc, char** argv) {
  const std::locale named(std::locale::classic(), new std::numpunct<char>);
  rebuilt::in_threads(argc, argv, [&named](unsigned me, long numbers) {
    for (long i = 0; i < numbers; ++i) {
      std::ostringstream text;
      text.imbue(named);
      text << (i & 1023) + me;
      rebuilt::keep(text);
    }
  });
}
