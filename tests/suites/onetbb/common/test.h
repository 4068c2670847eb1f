// SPDX-License-Identifier: MIT
// Test cases and checks of oneTBB's tests, without their library: a check that fails ends the program. Nothing here
// allocates when a check passes, and little when it fails, since memory may be short then.
#ifndef FREEHOLD_SUITES_ONETBB_TEST_H
#define FREEHOLD_SUITES_ONETBB_TEST_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <new>

#define TBB_USE_EXCEPTIONS 1
#define __TBB_CPP11_GET_NEW_HANDLER_PRESENT 1

namespace suite {

struct Case {
  const char* name;
  void (*run)();
  Case* next;
  static inline Case* first = nullptr;
  static inline Case** end = &first;
  Case(const char* of, void (*body)()) : name(of), run(body), next(nullptr) {
    *end = this;
    end = &next;
  }
};

inline void check(bool good, const char* condition, const char* why, const char* file, int line) {
  if (good) return;
  dprintf(STDOUT_FILENO, "%s:%d: check failed: %s%s%s\n", file, line, condition, why ? ": " : "", why ? why : "");
  _exit(1);
}

}  // namespace suite

#define SUITE_JOIN_2(a, b) a##b
#define SUITE_JOIN(a, b) SUITE_JOIN_2(a, b)
#define SUITE_CASE(name, function)                                \
  static void function();                                         \
  static suite::Case SUITE_JOIN(function, _case)(name, function); \
  static void function()
#define TEST_CASE(name) SUITE_CASE(name, SUITE_JOIN(suite_test_, __LINE__))

#define REQUIRE(...) suite::check(static_cast<bool>(__VA_ARGS__), #__VA_ARGS__, nullptr, __FILE__, __LINE__)
#define REQUIRE_MESSAGE(condition, why) suite::check(static_cast<bool>(condition), #condition, why, __FILE__, __LINE__)
#define CHECK_FAST_MESSAGE REQUIRE_MESSAGE
#define CHECK_MESSAGE REQUIRE_MESSAGE

int main() {
  for (suite::Case* one = suite::Case::first; one != nullptr; one = one->next) one->run();
}

#endif
