// SPDX-License-Identifier: MIT
// Call stacks through code that the test makes at run time, without unwind information: no frame pointer, whatever it is,
// makes the walk read what is not there. Stacks that go on: tests/cli/heap_test.cpp, tests/doctor/probe_test.cpp.
#include "freehold/os/runtime_frames.hpp"

#include <sys/mman.h>
#include <ucontext.h>

#include <initializer_list>

#include "freehold/os/call_stack.hpp"
#include "tests/support/test.hpp"

namespace freehold::os {
namespace runtime_frames_test {

constexpr unsigned kDepth = 48;

struct Stack {
  void* addresses[kDepth] = {};
  unsigned count = 0;
};
using Function = void (*)(Stack&);

// Frames of their own: each does something after its call.
[[gnu::noinline]] void captures(Stack& stack) { stack.count = capture_call_stack(stack.addresses, kDepth, 0); }
[[gnu::noinline]] void outer(Function code, Stack& stack) {
  code(stack);
  asm volatile("" ::: "memory");
}

}  // namespace runtime_frames_test

namespace {
using namespace runtime_frames_test;

constexpr std::size_t kPage = 4096;
constexpr std::size_t kBefore = 16;  // UndefinedBehaviorSanitizer looks for a type before what is called

// A page of machine code that calls `target` with its own argument.
class Code {
 public:
  Code(std::initializer_list<unsigned char> before, Function target, std::initializer_list<unsigned char> after) {
    at_ = static_cast<unsigned char*>(::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (at_ == MAP_FAILED) std::abort();
    unsigned char* to = std::copy(before.begin(), before.end(), at_ + kBefore);
    to = std::copy_n(std::array<unsigned char, 2>{0x48, 0xb9}.begin(), 2, to);  // mov $target,%rcx
    std::memcpy(to, &target, sizeof target);
    to = std::copy_n(std::array<unsigned char, 2>{0xff, 0xd1}.begin(), 2, to + sizeof target);  // call *%rcx
    std::copy(after.begin(), after.end(), to);
    if (::mprotect(at_, kPage, PROT_READ | PROT_EXEC) != 0) std::abort();
  }
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  ~Code() { ::munmap(at_, kPage); }

  [[nodiscard]] Function function() const { return reinterpret_cast<Function>(at_ + kBefore); }
  [[nodiscard]] bool has(const void* address) const {
    return reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(at_) < kPage;
  }

 private:
  unsigned char* at_;
};

// push %rbp; mov $frame,%rbp; ... nop; pop %rbp; ret: the frame pointer is any number.
Code with_frame_pointer(std::uintptr_t frame, Function target) {
  const auto byte = [frame](int i) { return static_cast<unsigned char>(frame >> 8 * i); };
  return {{0x55, 0x48, 0xbd, byte(0), byte(1), byte(2), byte(3), byte(4), byte(5), byte(6), byte(7)},
          target,
          {0x90, 0x5d, 0xc3}};
}

// push %rbp; push %rbx; push %rcx; mov $frame,%rbp; mov $rbx,%ebx; ... pop %rcx; pop %rbx; pop %rbp; ret
Code with_frame_pointer_and_rbx(std::uintptr_t frame, unsigned char rbx, Function target) {
  const auto byte = [frame](int i) { return static_cast<unsigned char>(frame >> 8 * i); };
  return {{0x55, 0x53, 0x51, 0x48, 0xbd, byte(0), byte(1), byte(2), byte(3), byte(4), byte(5), byte(6), byte(7), 0xbb, rbx,
           0, 0, 0},
          target,
          {0x59, 0x5b, 0x5d, 0xc3}};
}

class RuntimeCode : public testing::Test {
 protected:
  void SetUp() override {
    if (!prepare_call_stacks()) GTEST_SKIP() << "no unwinder";
    if (!RuntimeFrames::are_supported()) GTEST_SKIP() << "stacks end at such code on this machine";
  }
};

void expect_end_at(const Code& code, Stack& stack) {
  outer(code.function(), stack);
  ASSERT_GE(stack.count, 2U);
  EXPECT_TRUE(code.has(stack.addresses[stack.count - 1])) << "the stack ends at the code";
}

TEST_F(RuntimeCode, FramePointerIsAnyNumber_StackEndsThere) {
  std::uintptr_t here = 0;
  const auto stack_pointer = reinterpret_cast<std::uintptr_t>(&here);
  const std::uintptr_t numbers[] = {0,
                                    1,
                                    8,
                                    0x7fff'ffff'fff8,
                                    std::uintptr_t{1} << 47,
                                    ~std::uintptr_t{0},
                                    ~std::uintptr_t{7},
                                    0x8000'0000'0000'0000,
                                    stack_pointer - 65536 * 2,  // below
                                    stack_pointer + 1,          // not aligned
                                    stack_pointer + ReadableStack::kMostFrameBytes * 4,
                                    reinterpret_cast<std::uintptr_t>(&captures),
                                    reinterpret_cast<std::uintptr_t>(MAP_FAILED)};
  for (const std::uintptr_t number : numbers) {
    const Code code = with_frame_pointer(number, captures);
    Stack stack;
    expect_end_at(code, stack);
  }
}

// A frame pointer that leads somewhere on the stack, but to no function: what was found on the way is dropped.
TEST_F(RuntimeCode, ChainThatEndsNowhere_NothingOfItIsWritten) {
  alignas(16) volatile std::uintptr_t frames[8] = {};
  const auto place = [&frames](int i) { return reinterpret_cast<std::uintptr_t>(&frames[i]); };
  for (const std::uintptr_t end : {std::uintptr_t{0}, std::uintptr_t{8}, ~std::uintptr_t{0}}) {
    frames[0] = place(2);
    frames[1] = 0x1234'5678;
    frames[2] = place(4);
    frames[3] = 0x1234'5679;
    frames[4] = place(0);  // back
    frames[5] = end == 0 ? 0x1234'567a : end;
    const Code code = with_frame_pointer(place(0), captures);
    Stack stack;
    expect_end_at(code, stack);
  }
}

// A stack of the test's own, behind which nothing can be read.
class OwnStack {
 public:
  OwnStack() {
    begin_ = static_cast<unsigned char*>(::mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (begin_ == MAP_FAILED || ::mprotect(begin_ + kPage, kUsed, PROT_READ | PROT_WRITE) != 0) std::abort();
  }
  OwnStack(const OwnStack&) = delete;
  OwnStack& operator=(const OwnStack&) = delete;
  ~OwnStack() { ::munmap(begin_, kBytes); }

  [[nodiscard]] std::uintptr_t end() const { return reinterpret_cast<std::uintptr_t>(begin_) + kPage + kUsed; }
  // `spare` bytes at its end are left to the test.
  void run(void (*function)(), std::size_t spare = 0) {
    static ucontext_t back, there;
    ASSERT_EQ(::getcontext(&there), 0);
    there.uc_stack.ss_sp = begin_ + kPage;
    there.uc_stack.ss_size = kUsed - spare;
    there.uc_link = &back;
    ::makecontext(&there, function, 0);
    ASSERT_EQ(::swapcontext(&back, &there), 0);
  }

 private:
  static constexpr std::size_t kUsed = 256 * 1024, kBytes = kUsed + 2 * kPage;
  unsigned char* begin_;
};

const Code* g_code = nullptr;
Stack* g_stack = nullptr;

TEST_F(RuntimeCode, FramePointerAtTheStacksEnd_NothingBehindItIsRead) {
  for (const std::uintptr_t back : {std::uintptr_t{0}, std::uintptr_t{8}, std::uintptr_t{16}}) {
    OwnStack own;
    // At the end itself; its second word behind the end; the last place that is whole.
    const Code code = with_frame_pointer(own.end() - back, captures);
    Stack stack;
    g_code = &code;
    g_stack = &stack;
    own.run([] { expect_end_at(*g_code, *g_stack); });
  }
}

#if defined(__x86_64__)
// Functions that a frame pointer which is any number may lead to, each by the unwind information of its kind. They are
// never executed: the place behind their call is all that is used.
asm(R"(
  .pushsection .text
  .macro function name, place
  .type \name, @function
  \name:
  .cfi_startproc
  nop
  \place
  .cfi_offset %rbp, -16
  call abort
  .globl \name\()_called
  .hidden \name\()_called
  \name\()_called:
  nop
  .cfi_endproc
  .size \name, .-\name
  .endm
  function frames_by_frame_pointer, ".cfi_def_cfa %rbp, 16"
  function frames_by_stack_pointer, ".cfi_def_cfa %rsp, 8192"
  function frames_by_small_frame, ".cfi_def_cfa %rsp, 48"
  function frames_by_a_word_at_the_frame_pointer, ".cfi_escape 0x0f, 3, 0x76, 0, 0x06"
  function frames_by_another_register, ".cfi_def_cfa %rbx, 16"
  .popsection
)");
extern "C" const char frames_by_frame_pointer_called[], frames_by_stack_pointer_called[], frames_by_small_frame_called[],
    frames_by_a_word_at_the_frame_pointer_called[], frames_by_another_register_called[];

// Such a frame pointer leads to a guess, and so is all behind it.
void expect_end_behind(const Code& code, const char* function) {
  Stack stack;
  outer(code.function(), stack);
  ASSERT_GE(stack.count, 3U);
  EXPECT_TRUE(code.has(stack.addresses[stack.count - 2]));
  EXPECT_EQ(stack.addresses[stack.count - 1], function - 1) << "the stack ends at the function that was guessed";
}

const char* g_function = nullptr;
std::uintptr_t* g_frame = nullptr;  // words at the end of a stack: AddressSanitizer keeps variables elsewhere

TEST_F(RuntimeCode, FramePointerLeadsToAFunction_ItsOwnFrameIsAskedForToo) {
  for (const char* const function : {frames_by_frame_pointer_called, frames_by_a_word_at_the_frame_pointer_called}) {
    OwnStack own;
    g_function = function;
    g_frame = reinterpret_cast<std::uintptr_t*>(own.end() - kPage / 2);
    own.run(
        [] {
          const auto place = reinterpret_cast<std::uintptr_t>(g_frame);
          for (const std::uintptr_t number :
               {std::uintptr_t{0}, std::uintptr_t{1}, std::uintptr_t{8}, std::uintptr_t{1} << 47, ~std::uintptr_t{7},
                ~std::uintptr_t{0}, place - 64, place, place + 1, place + 4 * ReadableStack::kMostFrameBytes}) {
            g_frame[0] = number;
            g_frame[1] = reinterpret_cast<std::uintptr_t>(g_function);
            const Code code = with_frame_pointer(place, captures);
            SCOPED_TRACE(number);
            expect_end_behind(code, g_function);
          }
        },
        kPage);
  }
}

TEST_F(RuntimeCode, FramePointerLeadsToAFunctionByAnotherRegister_NothingOfItIsRead) {
  OwnStack own;
  g_frame = reinterpret_cast<std::uintptr_t*>(own.end() - kPage / 2);
  own.run(
      [] {
        g_frame[0] = 0;
        g_frame[1] = reinterpret_cast<std::uintptr_t>(frames_by_another_register_called);
        const Code code = with_frame_pointer_and_rbx(reinterpret_cast<std::uintptr_t>(g_frame), 8, captures);
        expect_end_behind(code, frames_by_another_register_called);
      },
      kPage);
}

TEST_F(RuntimeCode, FramePointerLeadsToAFunctionAtTheStacksEnd_NothingBehindItIsRead) {
  for (const char* const function : {frames_by_stack_pointer_called, frames_by_small_frame_called}) {
    OwnStack own;
    g_function = function;
    g_frame = reinterpret_cast<std::uintptr_t*>(own.end()) - 2;
    own.run(
        [] {
          g_frame[0] = 0;
          g_frame[1] = reinterpret_cast<std::uintptr_t>(g_function);
          const Code code = with_frame_pointer(reinterpret_cast<std::uintptr_t>(g_frame), captures);
          expect_end_behind(code, g_function);
        },
        kPage);
  }
}

#endif

}  // namespace
}  // namespace freehold::os
