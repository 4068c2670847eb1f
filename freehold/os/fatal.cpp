// SPDX-License-Identifier: MIT
// The functions of freehold/base/check.hpp that write, and end the process.
#include "freehold/base/check.hpp"

#include <atomic>
#include <cerrno>

#include "freehold/os/system_call.hpp"
#include "freehold/os/text_line.hpp"

namespace freehold::base {
namespace {

std::atomic<FatalHandler> g_handler{nullptr};
std::atomic<AssertionHandler> g_assertion_handler{nullptr};

std::atomic<bool> g_fatal_returns{false};

using Line = os::TextLine<256>;

}  // namespace

const char* text(HeapError error) noexcept {
  switch (error) {
    case HeapError::kDoubleFree: return "double free";
    case HeapError::kForeignPointer: return "free of a pointer that is not from this allocator";
    case HeapError::kInteriorPointer: return "free of a pointer into the middle of a block";
    case HeapError::kCorruption: return "corrupted heap metadata";
    case HeapError::kObjectsLive: return "end of a pool with objects that live";
    case HeapError::kOtherFamily: return "free of a block by another family";
    case HeapError::kWrongSize: return "free of a block with a wrong size or alignment";
    case HeapError::kWriteBehind: return "write behind the end of a block";
    case HeapError::kWriteBefore: return "write before the beginning of a block";
    case HeapError::kWriteToFreed: return "write to a freed block";
    case HeapError::kUseOfFreed: return "use of a freed block";
    case HeapError::kAccessBehind: return "access behind the end of a block";
    case HeapError::kAccessBefore: return "access before the beginning of a block";
  }
  return "unknown error";
}

FatalHandler set_fatal_handler(FatalHandler handler) noexcept { return g_handler.exchange(handler); }

// Relaxed: a mode, it publishes nothing.
void set_fatal_returns(bool returns) noexcept { g_fatal_returns.store(returns, std::memory_order_relaxed); }
bool fatal_returns() noexcept { return g_fatal_returns.load(std::memory_order_relaxed); }

bool report(HeapError error, const void* address, ReportDetails details, const void* context) noexcept {
  if (FatalHandler handler = g_handler.load(); handler != nullptr) {
    handler(error, address);
    return false;
  }
  Line line;
  line.add("freehold: ");
  line.add(text(error));
  line.add(": ");
  line.add(address);
  line.write();
  if (details != nullptr) {
    const int saved = errno;
    details(context);
    errno = saved;
  }
  return true;
}

void fatal(HeapError error, const void* address, ReportDetails details, const void* context) noexcept {
  if (report(error, address, details, context) && !fatal_returns()) os::kernel::abort();
}

AssertionHandler set_assertion_handler(AssertionHandler handler) noexcept { return g_assertion_handler.exchange(handler); }

void assertion_failed(const char* expression, const char* file, int line_number) noexcept {
  if (AssertionHandler handler = g_assertion_handler.load(); handler != nullptr) handler(expression, file, line_number);
  Line line;
  line.add("freehold: assertion failed: ");
  line.add(expression);
  line.add(" at ");
  line.add(file);
  line.add(":");
  line.add(static_cast<std::uint64_t>(line_number));
  line.write();
  os::kernel::abort();
}

}  // namespace freehold::base
