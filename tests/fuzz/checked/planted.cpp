// SPDX-License-Identifier: MIT
#include "tests/fuzz/checked/planted.hpp"

#include <sys/wait.h>

#include <csignal>
#include <sstream>

namespace freehold::fuzz {
namespace {

constexpr const char* kDouble = "double free";
constexpr const char* kForeign = "free of a pointer that is not from this allocator";
constexpr const char* kInterior = "free of a pointer into the middle of a block";
constexpr const char* kFamily = "free of a block by another family";
constexpr const char* kSize = "free of a block with a wrong size or alignment";
constexpr const char* kBehind = "write behind the end of a block";
constexpr const char* kBefore = "write before the beginning of a block";
constexpr const char* kFreed = "write to a freed block";
constexpr const char* kUse = "use of a freed block";
constexpr const char* kBeyond = "access behind the end of a block";
constexpr const char* kAhead = "access before the beginning of a block";

constexpr std::size_t kSmallMost = 30'000, kMost = 600'000;
constexpr std::size_t kCanary = 16;
constexpr std::size_t kAmple = 8 << 20;  // a quarantine that is sure to keep a block for a while, however it is shared

alignas(64) char g_static[256];

void expect(Plan& plan, const char* address, const char* text, const char* other = nullptr) {
  plan.first = plan.last = reinterpret_cast<std::uintptr_t>(address);
  plan.texts[0] = text;
  plan.texts[1] = other;
}

// A report of damage points to the block, or to a damaged byte.
void expect_around(Plan& plan, const char* text, const char* other, const char* third = nullptr) {
  plan.first = reinterpret_cast<std::uintptr_t>(plan.block.address) - kCanary;
  plan.last = reinterpret_cast<std::uintptr_t>(plan.block.address) + plan.block.bytes + kCanary;
  plan.texts[0] = text;
  plan.texts[1] = other;
  plan.texts[2] = third;
}

void damage(char* p, unsigned char flip) {
  volatile char& byte = *opaque(p);
  byte = static_cast<char>(byte ^ static_cast<char>(flip));
}

void look(const Plan& plan) {
  switch (plan.moment) {
    case Moment::kFree: return free_rightly(plan.block, plan.sized);
    case Moment::kRealloc: opaque(CApi::reallocate(plan.block.address, plan.block.bytes * 2 + 1)); return;
    case Moment::kDemand: {
      const auto check = reinterpret_cast<int (*)()>(::dlsym(RTLD_DEFAULT, "freehold_check_all"));
      if (check != nullptr) check();
      return;
    }
    case Moment::kExit: std::exit(0);
  }
}

// Sampled blocks are looked at when they are freed.
Moment moment_of(Random& random, Family family, const Settings& settings) {
  const auto moment = settings.guard_rate != 0 ? Moment::kFree : static_cast<Moment>(random.below(4));
  return moment == Moment::kRealloc && family != Family::kMalloc ? Moment::kFree : moment;
}

// Returns whether nothing may remember a block after its free: a large one that no quarantine keeps.
bool may_be_gone(const Block& block, const Settings& settings) {
  return block.bytes + block.alignment > kSmallMost && settings.quarantine < kAmple;
}

// Between two wrong calls, others of any size.
void other_calls(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) CApi::deallocate(CApi::allocate(i * 37 % 3000));
}

void plan_double_free(Plan& plan, Worker& worker, const Settings& settings) {
  plan.name = "double free";
  plan.block = worker.some(0, kMost);
  // Without a quarantine the block may be another's by then.
  plan.count = settings.quarantine < kAmple || worker.random().below(2) == 0 ? 0 : worker.random().below(100);
  expect(plan, plan.block.address, kDouble, may_be_gone(plan.block, settings) ? kForeign : nullptr);
  plan.commit = [](const Plan& p) {
    free_rightly(p.block, p.sized);
    other_calls(p.count);
    free_rightly(p.block, p.sized);
  };
}

void plan_interior(Plan& plan, Worker& worker, const Settings&) {
  plan.name = "free of the middle";
  plan.block = worker.some(2, kMost);
  const bool is_aligned = plan.block.bytes > 16 && worker.random().below(2) == 0;
  plan.offset = is_aligned ? 16 * (1 + worker.random().below((plan.block.bytes - 1) / 16))
                           : 1 + worker.random().below(plan.block.bytes - 1);
  plan.moment = worker.random().below(2) == 0 ? Moment::kRealloc : Moment::kFree;
  expect(plan, plan.block.address + plan.offset, kInterior);
  plan.commit = [](const Plan& p) {
    char* const middle = opaque(p.block.address + p.offset);
    if (p.moment == Moment::kRealloc)
      opaque(CApi::reallocate(middle, 100));
    else
      CApi::deallocate(middle);
  };
}

void plan_foreign(Plan& plan, Worker& worker, const Settings&) {
  plan.name = "free of a global variable";
  plan.block.address = g_static + worker.random().below(128);
  plan.moment = worker.random().below(2) == 0 ? Moment::kRealloc : Moment::kFree;
  expect(plan, plan.block.address, kForeign);
  plan.commit = [](const Plan& p) {
    if (p.moment == Moment::kRealloc)
      opaque(CApi::reallocate(p.block.address, 100));
    else
      CApi::deallocate(opaque(p.block.address));
  };
}

void plan_family(Plan& plan, Worker& worker, const Settings&) {
  plan.name = "another family";
  constexpr Family kFamilies[] = {Family::kMalloc, Family::kNew, Family::kNewArray};
  const std::size_t made = worker.random().below(3);
  const std::size_t ended = (made + 1 + worker.random().below(2)) % 3;
  plan.block.bytes = 1 + worker.random().below(5000);
  plan.block.family = kFamilies[made];
  plan.block.address = static_cast<char*>(allocate(plan.block.family, plan.block.bytes, 0));
  plan.second = plan.block;
  plan.second.family = kFamilies[ended];
  expect(plan, plan.block.address, kFamily);
  plan.commit = [](const Plan& p) { free_rightly(p.second, false); };
}

void plan_size(Plan& plan, Worker& worker, const Settings&) {
  plan.name = "a wrong size";
  plan.block.family = worker.random().below(2) == 0 ? Family::kNew : Family::kNewArray;
  if (worker.random().below(3) == 0 && free_sized() != nullptr) plan.block.family = Family::kMalloc;
  plan.block.bytes = 2 + worker.random().below(60'000);
  plan.block.address = static_cast<char*>(allocate(plan.block.family, plan.block.bytes, 0));
  plan.second = plan.block;
  const std::size_t wrong[] = {plan.block.bytes - 1, plan.block.bytes + 1, plan.block.bytes / 2, plan.block.bytes * 2};
  plan.second.bytes = wrong[worker.random().below(4)];
  expect(plan, plan.block.address, kSize);
  plan.commit = [](const Plan& p) { free_rightly(p.second, true); };
}

void plan_overflow(Plan& plan, Worker& worker, const Settings& settings) {
  plan.name = "a write behind the end";
  plan.block = worker.some(0, kMost);
  plan.offset = plan.block.bytes + worker.random().below(kCanary);
  plan.count = 1 + worker.random().below(plan.block.bytes + kCanary - plan.offset);
  plan.moment = moment_of(worker.random(), plan.block.family, settings);
  expect_around(plan, kBehind, kBeyond);
  plan.commit = [](const Plan& p) {
    for (std::size_t i = 0; i < p.count; ++i) damage(p.block.address + p.offset + i, p.flip);
    look(p);
  };
}

void plan_underflow(Plan& plan, Worker& worker, const Settings& settings) {
  plan.name = "a write before the beginning";
  plan.block = worker.some(0, kMost);
  plan.count = 1 + worker.random().below(kCanary);
  plan.moment = moment_of(worker.random(), plan.block.family, settings);
  const bool others_first = plan.moment == Moment::kExit || plan.moment == Moment::kDemand;
  expect_around(plan, kBefore, kAhead, others_first ? kBehind : nullptr);
  if (others_first) plan.first = 0, plan.last = ~std::uintptr_t{0};  // the end of the block that lies before it
  plan.commit = [](const Plan& p) {
    for (std::size_t i = 1; i <= p.count; ++i) damage(p.block.address - i, p.flip);
    look(p);
  };
}

void plan_write_after_free(Plan& plan, Worker& worker, const Settings&) {
  plan.name = "a write to a freed block";
  plan.block = worker.some(1, kMost);
  plan.offset = worker.random().below(plan.block.bytes);
  plan.moment = worker.random().below(2) == 0 ? Moment::kExit : Moment::kDemand;
  expect_around(plan, kFreed, kUse);
  plan.commit = [](const Plan& p) {
    free_rightly(p.block, p.sized);
    damage(p.block.address + p.offset, p.flip);
    look(p);
  };
}

void plan_use_after_free_by_realloc(Plan& plan, Worker& worker, const Settings& settings) {
  plan.name = "realloc of a freed block";
  plan.block = worker.some(0, kMost);
  expect(plan, plan.block.address, kDouble, may_be_gone(plan.block, settings) ? kForeign : nullptr);
  plan.commit = [](const Plan& p) {
    free_rightly(p.block, p.sized);
    opaque(CApi::reallocate(p.block.address, 500));
  };
}

const char* signal_or_code(int status) { return WIFSIGNALED(status) ? ::strsignal(WTERMSIG(status)) : "ended by itself"; }

}  // namespace

std::string Plan::describe() const {
  std::ostringstream text;
  text << name << ": " << block.bytes << " bytes at " << static_cast<void*>(block.address) << ", family "
       << static_cast<int>(block.family) << ", alignment " << block.alignment << ", offset " << offset << ", count " << count
       << ", moment " << static_cast<int>(moment) << ", sized " << sized;
  return text.str();
}

Plan plan_misuse(Worker& worker, const Settings& settings) {
  using Make = void (*)(Plan&, Worker&, const Settings&);
  struct Choice {
    Make make;
    bool is_on;
  };
  const Choice choices[] = {{plan_double_free, true},
                            {plan_interior, true},
                            {plan_foreign, true},
                            {plan_use_after_free_by_realloc, true},
                            // Sampled blocks are watched by their pages alone.
                            {plan_family, settings.family && settings.guard_rate == 0},
                            {plan_size, settings.sizes && settings.guard_rate == 0},
                            {plan_overflow, settings.canary},
                            {plan_underflow, settings.canary},
                            {plan_write_after_free, settings.fill && settings.quarantine >= kAmple}};
  Plan plan;
  plan.sized = worker.random().below(2) == 0;
  plan.flip = static_cast<unsigned char>(1 + worker.random().below(255));
  const Choice* choice = nullptr;
  do choice = &choices[worker.random().below(std::size(choices))];
  while (!choice->is_on);
  choice->make(plan, worker, settings);
  return plan;
}

std::string judge(const Plan& plan, const Settings& settings, const std::string& text, int wait_status) {
  const int signal = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0;
  const bool went_on = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;
  // After the report of a fault, the fault itself may end the process.
  const bool is_fault = text.find(kUse) != std::string::npos || text.find("access b") != std::string::npos;
  const bool is_ended = signal == SIGABRT || (is_fault && signal == SIGSEGV);
  if (settings.aborts ? !is_ended : !went_on && !(is_fault && is_ended))
    return std::string("it should have been ") + (settings.aborts ? "ended" : "let go on") +
           ", but: " + signal_or_code(wait_status);
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  const std::size_t colon = line.rfind(": 0x");
  if (line.rfind("freehold: ", 0) != 0 || colon == std::string::npos) return "no report";
  const std::string kind = line.substr(10, colon - 10);
  bool is_right = false;
  for (const char* right : plan.texts) is_right |= right != nullptr && kind == right;
  if (!is_right) return "another kind of report";
  const std::uintptr_t address = std::stoull(line.substr(colon + 4), nullptr, 16);
  if (address < plan.first || address > plan.last) return "another address";
  while (std::getline(lines, line))
    if (line.rfind("freehold:   ", 0) != 0 && (settings.aborts || line.rfind("freehold: ", 0) != 0))
      return "a line that is no detail";
  return "";
}

}  // namespace freehold::fuzz
