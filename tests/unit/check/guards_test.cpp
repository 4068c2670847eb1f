// SPDX-License-Identifier: MIT
// The process's guards beside handlers that were there before, and programs that go on after a report. Each in a process of
// its own. (Whole programs under the preload: tests/misuse/guards_test.cpp.)
#include "freehold/check/guards.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "freehold/os/pages.hpp"
#include "tests/support/test.hpp"

namespace freehold::check {
namespace {

volatile char* g_memory = nullptr;

[[noreturn]] void end_with_42(int) { ::_exit(42); }
[[noreturn]] void end_with_its_address(int, siginfo_t* info, void*) {
  ::_exit(info->si_addr == const_cast<char*>(g_memory) ? 43 : 1);
}

void install(void (*handler)(int)) {
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = SA_ONSTACK;
  ::sigaction(SIGSEGV, &action, nullptr);
}
void install(void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action{};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGSEGV, &action, nullptr);
}

constexpr SealedMemory kNeverReported{[](const void* address) { return address == const_cast<const char*>(g_memory); },
                                      [](const void*) { return false; }};

volatile char* guarded(std::size_t bytes) {
  os::Pages pages;
  if (!start_guards(pages, 1) || !is_guard_due(1)) std::exit(99);
  return static_cast<volatile char*>(allocate_guarded(bytes, 16));
}

// Deeper than any stack; no tail call.
[[gnu::noinline]] int overflow_the_stack(volatile char* from, long depth) {
  volatile char room[1024];
  room[0] = from[0];
  return depth == 0 ? 0 : overflow_the_stack(room, depth - 1) + room[0];
}

class GuardsDeathTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(GuardsDeathTest, FormerHandler_GetsOtherFaults) {
  EXPECT_EXIT(
      {
        install(end_with_42);
        (void)guarded(16);
        *g_memory = 1;
      },
      testing::ExitedWithCode(42), "^$");
}

// The memory was somebody else's by the time of the report.
TEST_F(GuardsDeathTest, FormerHandler_GetsFaultsAtSealedMemoryThatWasNotReported) {
  EXPECT_EXIT(
      {
        install(end_with_42);
        g_memory = static_cast<volatile char*>(::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        watch_sealed_memory(kNeverReported);
        *g_memory = 1;
      },
      testing::ExitedWithCode(42), "^$");
}

TEST_F(GuardsDeathTest, FormerHandlerWithInformation_GetsIt) {
  EXPECT_EXIT(
      {
        install(end_with_its_address);
        (void)guarded(16);
        g_memory = static_cast<char*>(::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        *g_memory = 1;
      },
      testing::ExitedWithCode(43), "^$");
}

TEST_F(GuardsDeathTest, FormerHandlerOfStackOverflows_RunsOnItsStack) {
  EXPECT_EXIT(
      {
        static char room[64 * 1024];
        stack_t stack{};
        stack.ss_sp = room;
        stack.ss_size = sizeof room;
        ::sigaltstack(&stack, nullptr);
        install(end_with_42);
        volatile char* const block = guarded(16);
        block[0] = 1;
        std::exit(overflow_the_stack(block, 1L << 30));
      },
      testing::ExitedWithCode(42), "^$");
}

TEST_F(GuardsDeathTest, FormerHandler_DoesNotGetOurs) {
  EXPECT_EXIT(
      {
        install(end_with_42);
        volatile char* const block = guarded(16);
        free_guarded(const_cast<char*>(block));
        block[3] = 1;
      },
      testing::KilledBySignal(SIGSEGV),
      "^freehold: use of a freed block: 0x[0-9a-f]+3\nfreehold:   3 bytes into a block of 16");
}

TEST_F(GuardsDeathTest, FatalReturns_EachMisuseIsReportedAndTheProgramGoesOn) {
  EXPECT_EXIT(
      {
        base::set_fatal_returns(true);
        volatile char* const block = guarded(4096);
        free_guarded(const_cast<char*>(block));
        block[0] = 1;
        block[4096] = 2;
        free_guarded(const_cast<char*>(block));
        std::exit(block[0] == 1 && block[4096] == 2 ? 17 : 1);
      },
      testing::ExitedWithCode(17),
      "^freehold: use of a freed block: [^:]*\n(freehold:   [^\n]*\n)+freehold: access behind the end of a block: "
      "[^:]*\n(freehold:   [^\n]*\n)+freehold: double free: ");
}

}  // namespace
}  // namespace freehold::check
