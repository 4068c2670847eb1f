// SPDX-License-Identifier: MIT
#include "freehold/check/report.hpp"

#include <unistd.h>

#include <algorithm>

#include "freehold/os/modules.hpp"
#include "freehold/os/process_memory.hpp"

namespace freehold::check {

void detail_stack(void* const* addresses, unsigned count) noexcept {
  if (count == 0) detail("  no call stack");
  for (unsigned i = 0; i < count; ++i) {
    DetailLine line;
    line.add("  #");
    line.add(i);
    line.add(" ");
    line.add(static_cast<const void*>(addresses[i]));
    if (os::Module module; os::find_module(addresses[i], module)) {
      line.add(" ");
      line.add(module.path);
      line.add("+");
      line.add(reinterpret_cast<const void*>(module.offset));
    }
    line.write();
  }
}

void detail_bytes(const void* begin, std::size_t count, std::uint8_t expected) noexcept {
  std::uint8_t bytes[16];
  count = std::min(count, sizeof bytes);
  DetailLine line;
  line.add(begin);
  line.add(":");
  if (!os::read_process_memory(::getpid(), reinterpret_cast<std::uintptr_t>(begin), bytes, count)) {
    line.add(" cannot be read");
    count = 0;
  }
  for (std::size_t i = 0; i < count; ++i) {
    line.add(bytes[i] == expected ? " " : " [");
    line.add(Byte{bytes[i]});
    if (bytes[i] != expected) line.add("]");
  }
  line.write();
}

}  // namespace freehold::check
