// SPDX-License-Identifier: MIT
#include "freehold/check/guards.hpp"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "freehold/check/report.hpp"
#include "freehold/os/call_on_stack.hpp"
#include "freehold/os/call_stack.hpp"
#include "freehold/os/fault.hpp"
#include "freehold/os/not_cancelled.hpp"
#include "freehold/os/threads.hpp"

namespace freehold::check {

constinit GuardSlots<sync::NativeAtomics, os::Pages> guards::g_slots;
constinit std::atomic<std::uint32_t> guards::g_rate{0};
constinit thread_local GuardSampler guards::t_sampler;

namespace {

using namespace guards;
using Slots = decltype(g_slots);

constexpr int kSignals[] = {SIGSEGV, SIGBUS};
struct sigaction g_former[2];  // for kSignals; written before the handlers are there
constinit std::atomic<bool> g_is_reporting{false};
constinit std::atomic<const SealedMemory*> g_sealed{nullptr};

void capture(Trace& trace) noexcept {
  constexpr unsigned kMostOwn = 6;  // calls of the allocator's, which are left out
  void* addresses[Trace::kDepth + kMostOwn];
  const unsigned count = os::capture_call_stack(addresses, Trace::kDepth + kMostOwn, 0);
  const unsigned own = os::own_frames(addresses, count);
  trace.thread = static_cast<std::uint32_t>(os::thread_id());
  trace.depth = std::min(count - own, Trace::kDepth);
  std::copy_n(addresses + own, trace.depth, trace.addresses);
}

// ---- reports ------------------------------------------------------------------------------------------------------------

// The details of a report need these.
struct GuardMisuse {
  const GuardedBlock* block;
  const void* address;
  const void* damage = nullptr;      // the first of the bytes around the block that were written
  const Trace* misuser = nullptr;    // the thread that does it
  const char* deed = "freed again";  // and what
  const os::Fault* fault = nullptr;  // an access that was refused
};

// `is_ours`: it is this thread that is changing the block.
void detail_place(const GuardedBlock& block, std::uintptr_t address, bool is_ours) noexcept {
  const auto* const start = reinterpret_cast<const void*>(block.start);
  const std::uintptr_t end = block.start + block.bytes;
  if (address < block.start)
    detail(block.start - address, " bytes before a block of ", block.bytes, " bytes at ", start);
  else if (address >= end)
    detail(address - end, " bytes behind a block of ", block.bytes, " bytes at ", start);
  else
    detail(address - block.start, " bytes into a block of ", block.bytes, " bytes at ", start);
  if (!block.is_whole && !is_ours) detail("another thread is changing the block: what follows may not fit together");
}

void detail_trace(const char* deed, const Trace& trace) noexcept {
  if (trace.thread == 0) return;
  detail(deed, " by thread ", trace.thread, ":");
  detail_stack(trace.addresses, trace.depth);
}

void detail_access(const os::Fault& fault) noexcept {
  constexpr unsigned kMostOfHandler = 12;  // its calls, which are left out
  void* addresses[Trace::kDepth + kMostOfHandler];
  const unsigned depth = os::capture_call_stack(addresses, sizeof addresses / sizeof *addresses, 0);
  unsigned first = 0;  // the instruction that was refused; before it are the handler's calls
  for (unsigned i = 0; i < depth; ++i)
    if (addresses[i] == fault.instruction) first = i;
  const char* const deed = fault.access == os::Access::kWrite  ? "written"
                           : fault.access == os::Access::kRead ? "read"
                                                               : "accessed";
  detail(deed, " by thread ", static_cast<unsigned>(os::thread_id()), ":");
  detail_stack(addresses + first, depth - first);
}

void write_details(const void* context) noexcept {
  const auto& misuse = *static_cast<const GuardMisuse*>(context);
  const GuardedBlock& block = *misuse.block;
  if (block.bytes != 0) {
    detail_place(block, reinterpret_cast<std::uintptr_t>(misuse.address), misuse.damage != nullptr);
    if (misuse.damage != nullptr) {
      detail("bytes from the first one on that was written:");
      detail_bytes(misuse.damage, 16, Slots::kFill);
    }
    detail_trace("allocated", block.allocated);
    detail_trace("freed", block.freed);
  }
  if (misuse.misuser != nullptr) detail_trace(misuse.deed, *misuse.misuser);
  if (misuse.fault != nullptr) detail_access(*misuse.fault);  // last: unwinding is what could fail
}

void report_bad_pointer(const Slots::Verdict& verdict, const char* deed) noexcept {
  Trace here;
  capture(here);
  const auto finding = g_slots.find(verdict.address);
  GuardMisuse misuse{&finding.block, verdict.address};
  misuse.misuser = &here;
  misuse.deed = deed;
  base::fatal(verdict.error, verdict.address, write_details, &misuse);
}

// Bytes around a block that is being freed or looked at.
void report_damage(const Slots::Verdict& verdict, const char* deed) noexcept {
  Trace here;
  capture(here);
  const auto finding = g_slots.find(verdict.address);
  GuardMisuse misuse{&finding.block, verdict.address};
  misuse.damage = verdict.address;
  misuse.misuser = &here;
  misuse.deed = deed;
  base::fatal(verdict.error, reinterpret_cast<const void*>(finding.block.start), write_details, &misuse);
}

// ---- faults -------------------------------------------------------------------------------------------------------------

// The signal does what it does by default, once the handler returns: the instruction is executed again.
void end_by(int signal) noexcept {
  struct sigaction by_default{};
  by_default.sa_handler = SIG_DFL;
  ::sigaction(signal, &by_default, nullptr);
}

[[nodiscard]] const SealedMemory* sealed_memory() noexcept {
  return g_sealed.load(std::memory_order_acquire);  // pairs with the release in watch_sealed_memory()
}
[[nodiscard]] bool is_sealed(const void* address) noexcept {
  const SealedMemory* const memory = sealed_memory();
  return memory != nullptr && memory->contains(address);
}

// A fault, and what came of it.
struct FaultReport {
  const void* address;
  const void* context;
  bool is_made = false;
  bool goes_on = false;  // the program, after the report
};

void make_report(void* argument) noexcept {
  auto& fault = *static_cast<FaultReport*>(argument);
  if (!is_guarded(fault.address)) {
    fault.is_made = sealed_memory()->report(fault.address);
    return;
  }
  const auto finding = g_slots.find(fault.address);
  if (!finding.is_known) return;
  const os::Fault access = os::fault_of(fault.context);
  GuardMisuse misuse{&finding.block, fault.address};
  misuse.fault = &access;
  fault.is_made = true;
  fault.goes_on = base::report(finding.error, fault.address, write_details, &misuse) && base::fatal_returns() &&
                  g_slots.forgive(fault.address);
}

// Reports take more than a signal stack may have left: the system alone writes 5 KiB to it on arm64, and more on x86-64
// with its widest registers. So they have a stack of their own, one at a time. What is not reached costs no memory.
constexpr std::size_t kReportStackBytes = 64 * 1024;  // measured: 4,328 bytes on x86-64, 6,896 on arm64
alignas(16) constinit char g_report_stack[kReportStackBytes];

// False: another report takes ten seconds. Whoever is to read it does not, or its handler has left by a jump; this fault is
// passed on, for it must not wait for ever.
[[nodiscard]] bool wait_for_report_stack() noexcept {
  constexpr timespec kNap{0, 1'000'000};
  for (unsigned naps = 0; g_is_reporting.exchange(true, std::memory_order_acquire);
       ++naps) {  // pairs with the release below
    if (naps == 10'000) return false;
    ::nanosleep(&kNap, nullptr);
  }
  return true;
}

void report_fault(FaultReport& fault) noexcept {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // a handler that came now would begin where this one's frames are
  const os::NotCancelled not_cancelled;           // it would leave by the nap, or by what a handler of reports calls
  if (wait_for_report_stack()) {
    os::call_on_stack(g_report_stack + kReportStackBytes, make_report, &fault);
    // After a report that ends the program, no thread reports anything any more.
    if (!fault.is_made || fault.goes_on) g_is_reporting.store(false, std::memory_order_release);
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void pass_on(int signal, siginfo_t* info, void* context) noexcept {
  const struct sigaction& former = g_former[signal == kSignals[0] ? 0 : 1];
  if ((former.sa_flags & SA_SIGINFO) != 0) return former.sa_sigaction(signal, info, context);
  if (former.sa_handler != SIG_DFL && former.sa_handler != SIG_IGN) return former.sa_handler(signal);
  const bool was_sent = info->si_code <= 0;  // by a process, not by an instruction that will be executed again
  if (was_sent && former.sa_handler == SIG_IGN) return;
  end_by(signal);
  if (was_sent) ::raise(signal);
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const int saved = errno;
  FaultReport fault{info->si_addr, context};
  if (info->si_code > 0 && (is_guarded(info->si_addr) || is_sealed(info->si_addr))) report_fault(fault);
  errno = saved;
  if (!fault.is_made) return pass_on(signal, info, context);
  if (!fault.goes_on) end_by(signal);
}

void install_handlers() noexcept {
  static constinit std::atomic<bool> installed{false};
  if (installed.exchange(true, std::memory_order_acq_rel)) return;
  for (unsigned i = 0; i < 2; ++i) {
    if (::sigaction(kSignals[i], nullptr, &g_former[i]) != 0) continue;
    struct sigaction action{};
    action.sa_sigaction = on_fault;
    action.sa_mask = g_former[i].sa_mask;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | (g_former[i].sa_flags & (SA_NODEFER | SA_RESTART));
    ::sigaction(kSignals[i], &action, nullptr);
  }
}

}  // namespace

void forget_reports() noexcept {
  g_is_reporting.store(false, std::memory_order_relaxed);  // relaxed: there is no other thread
}

void watch_sealed_memory(const SealedMemory& memory) noexcept {
  g_sealed.store(&memory, std::memory_order_release);
  install_handlers();
}

bool start_guards(os::Pages& pages, std::uint64_t rate) noexcept {
  if (rate == 0) return true;
  const unsigned count = rate == 1 ? kSlotsOfEveryCall : kGuardSlots;
  // Inaccessible, too: what lies far from a block, of 4 MiB on each side of all.
  constexpr std::size_t kMargin = std::size_t{4} << 20;
  const std::size_t page = os::page_bytes(), region_bytes = Slots::region_bytes(count, page);
  const std::size_t bytes = base::align_up(count * (sizeof(Slots::Record) + sizeof(Slots::State)), page);
  void* const memory = pages.map(bytes);
  if (memory == nullptr) return false;
  void* const margin = pages.reserve(region_bytes + 2 * kMargin, page);
  if (margin == nullptr) {
    (void)pages.unmap(memory, bytes);
    return false;
  }
  void* const region = static_cast<std::byte*>(margin) + kMargin;
  pages.name(region, region_bytes, "freehold guarded blocks");
  auto* const states = static_cast<Slots::State*>(memory);
  g_slots.init(pages, region, page, states, reinterpret_cast<Slots::Record*>(states + count), count);
  install_handlers();
  const auto most = std::uint64_t{GuardSampler::kMostRate};
  g_rate.store(static_cast<std::uint32_t>(rate < most ? rate : most), std::memory_order_release);
  return true;
}

void* allocate_guarded(std::size_t bytes, std::size_t alignment, const Request& request, std::uint32_t stack) noexcept {
  const int saved = errno;
  const std::uintptr_t note = std::uintptr_t{stack} << 16 |
                              static_cast<std::uintptr_t>(std::bit_width(request.alignment)) << 8 |
                              static_cast<std::uintptr_t>(request.family);
  void* const block = g_slots.allocate(bytes, alignment, t_sampler.coin(), capture, note);
  errno = saved;
  return block;
}

void free_guarded(void* block) noexcept {
  const int saved = errno;
  const auto report_it = [](const Slots::Verdict& verdict) { report_damage(verdict, "freed"); };
  if (const auto verdict = g_slots.free(block, capture, report_it); verdict.is_bad)
    report_bad_pointer(verdict, verdict.error == base::HeapError::kDoubleFree ? "freed again" : "freed");
  errno = saved;
}

std::size_t guarded_bytes(const void* block) noexcept {
  const std::size_t bytes = g_slots.bytes_of(block);
  if (bytes == 0) report_bad_pointer(g_slots.verdict_on(block), "used");
  return bytes;
}

Contents guarded_contents(const void* block) noexcept {
  const std::size_t bytes = g_slots.bytes_of(block);
  if (bytes == 0) return {};
  const std::uintptr_t note = g_slots.note_of(block);
  return {bytes, std::size_t{1} << (note >> 8 & 0xff) >> 1, static_cast<Family>(note & 0xff), 0,
          static_cast<std::uint32_t>(note >> 16)};
}

bool look_at_guarded(const void* block) noexcept {
  if (g_slots.bytes_of(block) == 0) return false;
  const auto verdict = g_slots.look_around(block);
  if (verdict.is_bad) report_damage(verdict, "looked at");
  return verdict.is_bad;
}

}  // namespace freehold::check
