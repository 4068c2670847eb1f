// SPDX-License-Identifier: MIT
// Errors that end the process. There are three kinds of error (docs/guarantees.md): exhausted memory is a return value;
// misuse and corruption of the heap end in fatal(); a broken invariant of our own is a FREEHOLD_ASSERT, compiled out of
// release builds. fatal() prints one fixed line and aborts. It allocates nothing and takes no lock, so it works in the
// middle of a malloc. Tests replace the handler to check that an error is reported.
#pragma once
#include <cstdint>
#include <new>

namespace freehold::base {

enum class HeapError : std::uint8_t {
  kDoubleFree,       // the slot's free bit is set already
  kForeignPointer,   // not ours: outside the arena and unknown to the registry
  kInteriorPointer,  // ours, but not the start of a block
  kCorruption,       // metadata contradict themselves
  kObjectsLive,      // a pool ended before its objects
  // Checked mode reports these, and sampled guards the last three (freehold/check):
  kOtherFamily,   // malloc'ed and deleted, new[] and delete ...
  kWrongSize,     // freed with a size or alignment that is not the block's
  kWriteBehind,   // bytes behind the block were written
  kWriteBefore,   // bytes before the block were written
  kWriteToFreed,  // bytes of a freed block were written
  kUseOfFreed,    // the processor refused an access to a freed block
  kAccessBehind,  // the processor refused an access behind a block
  kAccessBefore,  // the processor refused an access before a block
};

using FatalHandler = void (*)(HeapError, const void* address);

// Writes the lines of a report that follow the first one; async-signal-safe. check/report.hpp helps.
using ReportDetails = void (*)(const void* context);

// Prints "freehold: <error>: <address>" to standard error, then what `details` has to say, and calls abort(); or calls the
// test's handler. If a handler returns, or set_fatal_returns() said so, the offending operation is dropped. Any thread;
// async-signal-safe; errno is unchanged.
[[gnu::cold, gnu::noinline]] void fatal(HeapError error, const void* address, ReportDetails details = nullptr,
                                        const void* context = nullptr) noexcept;
// The same, but it returns after the report: for an error that the system is about to end the process for. False: a test's
// handler took the error.
[[gnu::cold, gnu::noinline]] bool report(HeapError error, const void* address, ReportDetails details = nullptr,
                                         const void* context = nullptr) noexcept;
// Makes fatal() return after its report instead of calling abort(), or undoes that. Off at first.
void set_fatal_returns(bool returns) noexcept;
[[nodiscard]] bool fatal_returns() noexcept;
// Replaces the handler, returns the former one; nullptr restores the default. For tests. It returns, or ends the process: if
// it left by longjmp() or an exception, a report of a refused access would hold up the next ones for ten seconds each.
FatalHandler set_fatal_handler(FatalHandler handler) noexcept;
// The fixed text of an error, e.g. "double free".
[[nodiscard]] const char* text(HeapError error) noexcept;

// Called instead of printing and aborting when an assertion fails; it must not return. For the simulator.
using AssertionHandler = void (*)(const char* expression, const char* file, int line);
// Replaces the handler, returns the former one; nullptr restores the default. For tests.
AssertionHandler set_assertion_handler(AssertionHandler handler) noexcept;

[[noreturn, gnu::cold, gnu::noinline]] void assertion_failed(const char* expression, const char* file, int line) noexcept;

// For functions that cannot return an error: reports that memory is exhausted, by an exception, or in a program compiled
// without exceptions by one line on standard error and abort().
template <class Error = std::bad_alloc>
[[noreturn, gnu::cold, gnu::noinline]] void out_of_memory() {
#if defined(__cpp_exceptions)
  throw Error();
#else
  assertion_failed("memory for a pool or heap, in a program without exceptions", __FILE__, __LINE__);
#endif
}

}  // namespace freehold::base

// kChecked says whether this is a checked build: with our own assertions, and with bookkeeping that finds all misuse rather
// than some.
namespace freehold::base {
#if defined(FREEHOLD_CHECKED)
inline constexpr bool kChecked = true;
#else
inline constexpr bool kChecked = false;
#endif
}  // namespace freehold::base

#if defined(FREEHOLD_CHECKED)
#define FREEHOLD_ASSERT(e) ((e) ? static_cast<void>(0) : ::freehold::base::assertion_failed(#e, __FILE__, __LINE__))
#else
#define FREEHOLD_ASSERT(e) static_cast<void>(sizeof((e) ? 1 : 0))
#endif
