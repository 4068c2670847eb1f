// SPDX-License-Identifier: MIT
#include "freehold/base/check.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace freehold::base {
namespace {

std::atomic<FatalHandler> g_handler{nullptr};
std::atomic<AssertionHandler> g_assertion_handler{nullptr};

// A line built by hand: printf may allocate.
class Line {
 public:
  void add(const char* s) noexcept {
    const std::size_t n = std::strlen(s);
    const std::size_t room = sizeof text_ - length_;
    const std::size_t take = n < room ? n : room;
    std::memcpy(text_ + length_, s, take);
    length_ += take;
  }
  void add_hex(std::uintptr_t v) noexcept {
    char digits[2 * sizeof v + 1];
    char* p = digits + sizeof digits - 1;
    *p = '\0';
    do {
      *--p = "0123456789abcdef"[v & 15];
      v >>= 4;
    } while (v != 0);
    add("0x");
    add(p);
  }
  void add_decimal(int v) noexcept {
    char digits[12];
    char* p = digits + sizeof digits - 1;
    *p = '\0';
    do {
      *--p = static_cast<char>('0' + v % 10);
      v /= 10;
    } while (v != 0);
    add(p);
  }
  void write_and_abort() noexcept {
    add("\n");
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text_, length_);
    std::abort();
  }

 private:
  char text_[256];
  std::size_t length_ = 0;
};

}  // namespace

const char* text(HeapError error) noexcept {
  switch (error) {
    case HeapError::kDoubleFree: return "double free";
    case HeapError::kForeignPointer: return "free of a pointer that is not from this allocator";
    case HeapError::kInteriorPointer: return "free of a pointer into the middle of a block";
    case HeapError::kCorruption: return "corrupted heap metadata";
    case HeapError::kObjectsLive: return "end of a pool with objects that live";
  }
  return "unknown error";
}

FatalHandler set_fatal_handler(FatalHandler handler) noexcept { return g_handler.exchange(handler); }

void fatal(HeapError error, const void* address) noexcept {
  if (FatalHandler handler = g_handler.load(); handler != nullptr) {
    handler(error, address);
    return;
  }
  Line line;
  line.add("freehold: ");
  line.add(text(error));
  line.add(": ");
  line.add_hex(reinterpret_cast<std::uintptr_t>(address));
  line.write_and_abort();
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
  line.add_decimal(line_number);
  line.write_and_abort();
  __builtin_unreachable();
}

}  // namespace freehold::base
