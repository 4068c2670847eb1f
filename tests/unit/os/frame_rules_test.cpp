// SPDX-License-Identifier: MIT
// Stacks by the rules of frames. The oracle is the unwinder: what it finds from the same place, or makes of the same
// registers and memory.
#include "freehold/os/frame_rules.hpp"

#include <alloca.h>
#include <dlfcn.h>
#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include "freehold/os/call_stack.hpp"
#include "tests/support/child.hpp"
#include "tests/support/test.hpp"

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

// Returns whether a capture from here is the unwinder's stack. Both begin with this function, at different calls.
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
    const auto look = [seed] {
      RandomProgram program(seed);
      program.run(12);
      return program.wrong() == 0 ? 0 : 1;
    };
    EXPECT_EQ(test::run_in_child(look), 0);
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

// Unwind information of one function, made by hand: what a compiler seldom writes has no rule, and nothing beyond it is
// read.
struct HandMade {
  using Text = std::vector<unsigned char>;

  Text kinds{'z', 'R', 0}, data{0x1B}, initial{0x0C, 7, 8, 0x90, 1}, program{};
  unsigned char version = 1, code_factor = 1, offset_factor = 0x78, return_column = 16;
  std::uint32_t cie_id = 0, first_byte = 0;  // the function begins there
  std::uint64_t data_bytes = 1;              // as the CIE says
  std::uint32_t fde_length = 0;              // 0: what it is
  unsigned char header_version = 1;
  bool has_header = true, has_object = true;

  static constexpr std::size_t kCode = 256, kBytes = 4096;
  alignas(64) static unsigned char memory[kBytes];
  static inline const HandMade* made = nullptr;

  static int find_object(void*, dl_find_object* found) {
    if (!made->has_object) return -1;
    found->dlfo_map_start = memory;
    found->dlfo_map_end = memory + kCode;
    found->dlfo_eh_frame = made->has_header ? memory + kCode : nullptr;
    return 0;
  }
  static std::uintptr_t code() { return reinterpret_cast<std::uintptr_t>(memory) + 100; }

  [[nodiscard]] FrameRule rule() const {
    std::fill(std::begin(memory), std::end(memory), static_cast<unsigned char>(0));
    std::size_t at = kCode;
    const auto put = [&](const auto& value) {
      std::memcpy(memory + at, &value, sizeof value);
      at += sizeof value;
    };
    const auto put_all = [&](const Text& text) {
      for (const unsigned char byte : text) put(byte);
    };
    const auto offset = [](std::size_t to, std::size_t from) {
      return static_cast<std::int32_t>(to) - static_cast<std::int32_t>(from);
    };
    const std::size_t header = at, cie = header + 64;
    at = cie + 4;
    put(cie_id), put(version), put_all(kinds);
    put(code_factor), put(offset_factor), put(return_column), put(static_cast<unsigned char>(data_bytes));
    put_all(data), put_all(initial);
    at = (at + 19) / 4 * 4;  // instructions that do nothing, to twelve bytes at least
    const auto cie_length = static_cast<std::uint32_t>(at - cie - 4);
    const std::size_t fde = at;
    at += 4;
    put(static_cast<std::uint32_t>(at - cie)), put(offset(first_byte, at)), put(std::uint32_t{kCode}),
        put(static_cast<unsigned char>(0));
    put_all(program);
    at = (at + 3) / 4 * 4;
    const auto length = fde_length != 0 ? fde_length : static_cast<std::uint32_t>(at - fde - 4);
    std::memcpy(memory + cie, &cie_length, 4), std::memcpy(memory + fde, &length, 4);
    at = header;
    put_all({header_version, 0x1B, 0x03, 0x3B}), put(offset(cie, at)), put(std::uint32_t{1});
    put(offset(first_byte, header)), put(offset(fde, header));
    made = this;
    return FrameRules(find_object).find(code());
  }
};
alignas(64) unsigned char HandMade::memory[HandMade::kBytes];

// The caller's state, from a stack whose words tell their places.
FrameState caller_by(FrameRule rule) {
  static std::uintptr_t words[64];
  for (std::size_t i = 0; i < std::size(words); ++i) words[i] = i;
  FrameState state{HandMade::code(), reinterpret_cast<std::uintptr_t>(words + 20), 0, 1003, 1012, 1013, 1014, 1015};
  rule.step(state);
  state.stack = (state.stack - reinterpret_cast<std::uintptr_t>(words)) / sizeof(std::uintptr_t);
  return state;
}

TEST(FrameRules, HandMadeInformation_RulesAreWhatItSays) {
  const FrameRule plain = HandMade{}.rule();
  ASSERT_TRUE(plain.is_known());
  EXPECT_EQ(caller_by(plain), (FrameState{20, 21, 0, 1003, 1012, 1013, 1014, 1015}));

  const auto by = [](HandMade::Text program) {
    HandMade made;
    made.program = std::move(program);
    const FrameRule rule = made.rule();
    EXPECT_TRUE(rule.is_known());
    return caller_by(rule);
  };
  EXPECT_EQ(by({0x0E, 40, 0x05, 3, 2}), (FrameState{24, 25, 0, 23, 1012, 1013, 1014, 1015}));
  EXPECT_EQ(by({0x0E, 40, 0x05, 3, 2, 0x08, 3}).rbx, 1003U) << "the same after all";
  EXPECT_EQ(by({0x0E, 40, 0x83, 2, 0x06, 3}).rbx, 1003U) << "as in the beginning";
  EXPECT_EQ(by({0x0E, 40, 0x05, 0x20, 2}).stack, 25U) << "a register that no rule needs";
  EXPECT_EQ(by({0x2E, 8, 0x0E, 16}).stack, 22U);
  for (const auto& beyond : {HandMade::Text{0x02, 200}, {0x03, 200, 0}, {0x04, 200, 0, 0, 0}}) {
    HandMade::Text program = beyond;  // an advance beyond the call; what follows holds later
    program.push_back(0xFF);
    EXPECT_EQ(by(program).stack, 21U);
  }
  HandMade more;
  more.kinds = {'z', 'P', 'L', 'R', 0};
  more.data = {0x9B, 0, 0, 0, 0, 0x1B, 0x1B};
  more.data_bytes = 7;
  EXPECT_TRUE(more.rule().is_known()) << "with a personality";
  more.data = {0x00, 0, 0, 0, 0, 0, 0, 0, 0, 0x1B, 0x1B};
  more.data_bytes = 11;
  EXPECT_TRUE(more.rule().is_known()) << "with one of eight bytes";
  HandMade end;
  end.program = {0x07, 16};
  EXPECT_TRUE(end.rule().is_end());
}

TEST(FrameRules, InformationOfOtherKindsOrDamaged_NoRule) {
  const auto expect_none = [](const char* what, const auto& change) {
    HandMade made;
    change(made);
    EXPECT_FALSE(made.rule().is_known()) << what;
  };
  const auto expect_none_by = [&](const char* what, HandMade::Text program) {
    expect_none(what, [&](HandMade& made) { made.program = program; });
  };
  expect_none_by("an expression", {0x0F, 2, 0x77, 8});
  expect_none_by("nothing was remembered", {0x0B});
  expect_none_by("more is remembered than there is room for", {0x0A, 0x0A, 0x0A, 0x0A, 0x0A});
  expect_none_by("half a word", {0x0E, 12});
  expect_none_by("by another register", {0x0D, 3});
  expect_none_by("a register farther below than a rule can say", {0x83, 16});
  expect_none_by("a register at the address itself", {0x83, 0});
  expect_none_by("a number without an end", {0, 0, 0x0E, 0x80});
  expect_none_by("a number of more than 63 bits", {0x0E, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1});
  expect_none_by("half an advance", {0, 0, 0, 0x04});
  expect_none("an expression in the beginning", [](HandMade& made) { made.initial = {0x0F, 2, 0x77, 8}; });
  expect_none("another version", [](HandMade& made) { made.version = 3; });
  expect_none("no CIE", [](HandMade& made) { made.cie_id = 1; });
  expect_none("no augmentation", [](HandMade& made) { made.kinds = {'R', 0}; });
  expect_none("a signal's frame", [](HandMade& made) { made.kinds = {'z', 'R', 'S', 0}; });
  expect_none("too many kinds", [](HandMade& made) { made.kinds = {'z', 'R', 'R', 'R', 'R', 'R', 0}; });
  expect_none("another factor of code", [](HandMade& made) { made.code_factor = 4; });
  expect_none("another factor of offsets", [](HandMade& made) { made.offset_factor = 0x7C; });
  expect_none("another return address", [](HandMade& made) { made.return_column = 17; });
  expect_none("addresses of another kind", [](HandMade& made) { made.data = {0x00}; });
  expect_none("a personality of unknown size", [](HandMade& made) {
    made.kinds = {'z', 'P', 'R', 0};
    made.data = {0x02, 0, 0, 0x1B};
    made.data_bytes = 4;
  });
  expect_none("data beyond the CIE", [](HandMade& made) { made.data_bytes = 127; });
  expect_none("code before the first function", [](HandMade& made) { made.first_byte = 200; });
  expect_none("a long entry", [](HandMade& made) { made.fde_length = 5000; });
  expect_none("a short entry", [](HandMade& made) { made.fde_length = 8; });
  expect_none("a table of another kind", [](HandMade& made) { made.header_version = 2; });
  expect_none("no table", [](HandMade& made) { made.has_header = false; });
  expect_none("code of no object", [](HandMade& made) { made.has_object = false; });
}

#endif

}  // namespace
}  // namespace freehold::os
