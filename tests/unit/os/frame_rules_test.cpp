// SPDX-License-Identifier: MIT
// Stacks by the rules of frames. The oracle is the unwinder: what it finds from the same place, or makes of the same
// registers and memory.
#include "freehold/os/frame_rules.hpp"

#include <alloca.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "freehold/os/call_stack.hpp"

namespace freehold::os {
namespace frame_rules_test {

struct ByUnwinder {
  void* addresses[kMostFrames];
  unsigned count = 0;

  static _Unwind_Reason_Code visit(_Unwind_Context* context, void* argument) {
    auto& to = *static_cast<ByUnwinder*>(argument);
    int is_before = 0;
    const std::uintptr_t code = ::_Unwind_GetIPInfo(context, &is_before);
    if (code == 0 || to.count == kMostFrames) return _URC_END_OF_STACK;
    to.addresses[to.count++] = reinterpret_cast<void*>(is_before != 0 ? code : code - 1);
    return _URC_NO_REASON;
  }
};

// Whether a capture from here is the unwinder's stack. Both begin with this function, at different calls.
[[gnu::noinline]] bool is_as_by_unwinder() {
  void* addresses[kMostFrames];
  const unsigned count = capture_call_stack(addresses, kMostFrames, 0);
  ByUnwinder stack;
  (void)::_Unwind_Backtrace(ByUnwinder::visit, &stack);
  return count == stack.count && count > 1 && std::equal(addresses + 1, addresses + count, stack.addresses + 1);
}

// A program that calls itself by random ways, and looks at its stack on each of them.
class RandomProgram {
 public:
  explicit RandomProgram(unsigned seed) : random_(seed) {}

  void run(unsigned depth) {
    if (!is_as_by_unwinder()) ++wrong_;
    ++stacks_;
    if (depth == 0) return;
    switch (random_() % 9) {
      case 0: return plain(depth);
      case 1: return with_registers(depth, random_(), random_(), random_(), random_(), random_());
      case 2: return with_alloca(depth);
      case 3: return aligned(depth);
      case 4: return through_libc(depth);
      case 5: return through_signal(depth);
      case 6: return catches(depth);
      case 7: return jumps(depth);
      default: return twice(depth);
    }
  }
  [[nodiscard]] unsigned wrong() const { return wrong_; }
  [[nodiscard]] unsigned stacks() const { return stacks_; }

 private:
  [[gnu::noinline]] void plain(unsigned depth) {
    run(depth - 1);
    ++stacks_;
  }
  [[gnu::noinline]] void twice(unsigned depth) {
    run(depth - 1);
    run(depth / 2);
  }
  [[gnu::noinline]] void with_registers(unsigned depth, std::size_t a, std::size_t b, std::size_t c, std::size_t d,
                                        std::size_t e) {
    run(depth - 1);
    add(a + b + c + d + e);
  }
  [[gnu::noinline]] void with_alloca(unsigned depth) {
    const std::size_t bytes = 1 + random_() % 3000;
    auto* const room = static_cast<volatile char*>(alloca(bytes));
    room[bytes - 1] = 1;
    run(depth - 1);
    add(static_cast<std::size_t>(room[bytes - 1]));
  }
  [[gnu::noinline]] void aligned(unsigned depth) {  // a realigned stack has no simple rule
    alignas(64) volatile char room[128] = {};
    room[1] = 1;
    run(depth - 1);
    add(static_cast<std::size_t>(room[1]) + reinterpret_cast<std::uintptr_t>(&room) % 64);
  }
  [[gnu::noinline]] void through_libc(unsigned depth) {
    static thread_local RandomProgram* self;
    static thread_local unsigned rest;
    self = this;
    rest = depth - 1;
    int two[2] = {2, 1};
    ::qsort(two, 2, sizeof *two, [](const void* a, const void* b) {
      if (rest != ~0U) self->run(std::exchange(rest, ~0U));
      return *static_cast<const int*>(a) - *static_cast<const int*>(b);
    });
  }
  [[gnu::noinline]] void through_signal(unsigned depth) {
    static thread_local RandomProgram* self;
    static thread_local unsigned rest;
    self = this;
    rest = depth - 1;
    struct sigaction action{};
    action.sa_handler = [](int) { self->run(rest); };
    action.sa_flags = SA_NODEFER;
    ::sigaction(SIGUSR1, &action, nullptr);
    (void)::raise(SIGUSR1);
    ++stacks_;
  }
  [[gnu::noinline]] void catches(unsigned depth) {
    try {
      run(depth - 1);
      throws();
    } catch (int one) {
      add(static_cast<std::size_t>(one));
    }
    if (!is_as_by_unwinder()) ++wrong_;
  }
  [[gnu::noinline]] void throws() {
    if (!is_as_by_unwinder()) ++wrong_;
    if (random_() % 2 == 0) throw 1;
  }
  [[gnu::noinline]] void jumps(unsigned depth) {
    jmp_buf here;
    if (::_setjmp(here) == 0) {
      run(depth - 1);
      ::_longjmp(here, 1);
    }
    if (!is_as_by_unwinder()) ++wrong_;
  }

  void add(std::size_t n) { sum_ = sum_ + n; }

  std::minstd_rand random_;
  unsigned wrong_ = 0, stacks_ = 0;
  volatile std::size_t sum_ = 0;
};

}  // namespace frame_rules_test

namespace {
using namespace frame_rules_test;

class FrameRulesOfStacks : public testing::Test {
 protected:
  void SetUp() override {
    if (!prepare_call_stacks()) GTEST_SKIP() << "no unwinder";
  }
};

TEST_F(FrameRulesOfStacks, RandomProgram_EveryStackIsTheUnwinders) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    RandomProgram program(seed);
    program.run(4 + seed % 20);
    ASSERT_EQ(program.wrong(), 0U) << "seed " << seed << ", of " << program.stacks();
  }
}

TEST_F(FrameRulesOfStacks, RandomProgramInThreadsAndForks_EveryStackIsTheUnwinders) {
  std::atomic<unsigned> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t)
    threads.emplace_back([&wrong, t] {
      for (unsigned seed = 1; seed <= 20; ++seed) {
        RandomProgram program(100 * t + seed);
        program.run(12);
        wrong += program.wrong();
      }
    });
  for (unsigned seed = 1; seed <= 10; ++seed) {
    const pid_t child = ::fork();
    if (child == 0) {
      RandomProgram program(seed);
      program.run(12);
      ::_exit(program.wrong() == 0 ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0U);
}

void expect_the_unwinders(void* argument) {
  auto& count = *static_cast<unsigned*>(argument);
  ++count;
  EXPECT_TRUE(is_as_by_unwinder());
}

// As a plugin that is compiled anew and loaded again. What was learned of the first one would lead off the second's stack.
TEST_F(FrameRulesOfStacks, AnotherLibraryAtTheSameAddress_StackIsTheUnwinders) {
  using Function = void (*)(void (*)(void*), void*);
  unsigned calls = 0, at_the_same = 0;
  void* before = nullptr;
  for (int round = 0; round < 20; ++round) {
    void* const library = ::dlopen(round % 2 == 0 ? FREEHOLD_SMALL_PLUGIN : FREEHOLD_LARGE_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << ::dlerror();
    void* const function = ::dlsym(library, "frame_rules_plugin");
    ASSERT_NE(function, nullptr);
    if (function == std::exchange(before, function)) ++at_the_same;
    for (int i = 0; i < 2; ++i) reinterpret_cast<Function>(function)(expect_the_unwinders, &calls);
    ASSERT_EQ(::dlclose(library), 0);
  }
  EXPECT_EQ(calls, 40U);
  if (at_the_same == 0) GTEST_SKIP() << "no library was loaded where the other one was";
}

#if defined(__x86_64__)

// A function whose first instruction traps, right behind one whose last instruction has a large frame.
asm(R"(
  .pushsection .text
  .type frame_rules_before, @function
frame_rules_before:
  .cfi_startproc
  subq $72, %rsp
  .cfi_adjust_cfa_offset 72
  int3
  .cfi_endproc
  .globl frame_rules_trap
  .hidden frame_rules_trap
  .type frame_rules_trap, @function
frame_rules_trap:
  .cfi_startproc
  ud2
  ret
  .cfi_endproc
  .popsection
)");
extern "C" void frame_rules_trap();

unsigned g_wrong_at_trap, g_traps;

TEST_F(FrameRulesOfStacks, SignalBeforeAFunctionsFirstInstruction_StackIsTheUnwinders) {
  struct sigaction action{}, former{};
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = [](int, siginfo_t*, void* context) {
    if (!is_as_by_unwinder()) ++g_wrong_at_trap;
    ++g_traps;
    static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP] += 2;  // behind the instruction
  };
  ASSERT_EQ(::sigaction(SIGILL, &action, &former), 0);
  for (int i = 0; i < 3; ++i) frame_rules_trap();
  ::sigaction(SIGILL, &former, nullptr);
  EXPECT_EQ(g_traps, 3U);
  EXPECT_EQ(g_wrong_at_trap, 0U);
}

struct Code {
  std::uintptr_t begin, end;
};
std::vector<Code> executable_segments() {
  std::vector<Code> segments;
  ::dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* argument) {
        for (unsigned i = 0; i < object->dlpi_phnum; ++i) {
          const ElfW(Phdr)& segment = object->dlpi_phdr[i];
          const std::uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
          if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0)
            static_cast<std::vector<Code>*>(argument)->push_back({begin, begin + segment.p_memsz});
        }
        return 0;
      },
      &segments);
  return segments;
}

// The caller's frame of a given one, by the unwinder.
struct Step {
  Unwinder unwinder;
  FrameState to{};
  unsigned visits = 0;
  bool is_end = true;

  static _Unwind_Reason_Code visit(_Unwind_Context* context, void* argument) {
    auto& step = *static_cast<Step*>(argument);
    constexpr unsigned kCaller = 3;  // after the function that calls the unwinder, and the frame itself
    if (++step.visits < kCaller) return _URC_NO_REASON;
    int is_before = 0;
    const std::uintptr_t code = ::_Unwind_GetIPInfo(context, &is_before);
    if (code != 0) step.to = RuntimeFrames::state_of(context, code, step.unwinder);
    step.is_end = code == 0;
    return _URC_END_OF_STACK;
  }
};

// At any place of the code of the C and C++ libraries and of this program, with a stack whose words all differ.
TEST_F(FrameRulesOfStacks, AnyInstructionOfTheLoadedLibraries_RuleDoesAsTheUnwinder) {
  const auto find_object = reinterpret_cast<FrameRules::FindObject>(::dlsym(RTLD_DEFAULT, "_dl_find_object"));
  if (find_object == nullptr) GTEST_SKIP() << "libc does not find objects";
  const Unwinder unwinder{
      &_Unwind_Backtrace, &_Unwind_GetIPInfo, &_Unwind_GetCFA, &_Unwind_GetGR, &_Unwind_FindEnclosingFunction, nullptr};
  std::vector<std::uintptr_t> stack(64 * 1024);
  for (std::uintptr_t& word : stack) word = reinterpret_cast<std::uintptr_t>(&word);  // can be read as code
  std::minstd_rand random(1);
  unsigned known = 0, ends = 0, tried = 0;
  for (const Code& code : executable_segments()) {
    for (int i = 0; i < 4000; ++i) {
      const std::uintptr_t at = code.begin + 1 + random() % (code.end - code.begin - 1);
      if (unwinder.function_at(reinterpret_cast<void*>(at)) == nullptr) continue;
      ++tried;
      FrameRules rules(find_object), later(find_object);
      const FrameRule rule = rules.find(at);
      ASSERT_EQ(rule.bits(), later.find(at).bits()) << "kept, it is another one";
      if (!rule.is_known()) continue;
      const auto word = [&stack](std::size_t n) { return reinterpret_cast<std::uintptr_t>(&stack[n]); };
      const FrameState from{at, word(1000), word(2000), 3, 12, 13, 14, 15};
      FrameState to = from;
      if (!rule.is_end()) rule.step(to);
      if (to.stack >= word(stack.size() - 1)) continue;
      Step step{unwinder};
      RuntimeFrames::walk_from(from, unwinder, Step::visit, &step);
      ASSERT_EQ(rule.is_end(), step.is_end) << std::hex << at;
      ASSERT_TRUE(rule.is_end() || to == step.to) << std::hex << at;
      ++(rule.is_end() ? ends : known);
    }
  }
  EXPECT_GT(known, tried / 2) << "most functions have a rule";
  RecordProperty("ends", static_cast<int>(ends));
}

#endif

}  // namespace
}  // namespace freehold::os
