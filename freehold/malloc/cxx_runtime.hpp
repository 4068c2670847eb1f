// SPDX-License-Identifier: MIT
// The parts of the C++ runtime that operator new needs when memory is exhausted: the new handler, the throw, and a place
// where an exception under a nothrow form ends. The archive takes them from the runtime that the C++ program is linked with;
// a C program takes no operator new out of the archive, and so needs none. libfreehold.so must not need libstdc++ or libc++
// (a preloaded C program has neither): its references are weak, and libraries that came later are searched.
// Slow path only. Any thread.
#pragma once
#include <cstddef>
#include <new>

namespace freehold::cxx {

struct CxxRuntime {
  std::new_handler (*get_new_handler)() noexcept = nullptr;
  void (*throw_bad_alloc)() = nullptr;  // null: there is no runtime, or none that could be found
};

// The runtime of this process.
[[nodiscard]] CxxRuntime find_cxx_runtime() noexcept;
// The same among libraries loaded by dlopen, whose names the linker never saw. libfreehold.so only.
[[nodiscard]] CxxRuntime find_loaded_cxx_runtime() noexcept;

// Calls the handler. False if it threw; false without a call if there is no runtime that could catch its exception.
[[nodiscard]] bool returns(std::new_handler handler) noexcept;
// Calls the operator new that the program put in the place of ours; null if it threw.
[[nodiscard]] void* new_or_null(std::size_t bytes) noexcept;
[[nodiscard]] void* new_array_or_null(std::size_t bytes) noexcept;
[[nodiscard]] void* new_or_null(std::size_t bytes, std::align_val_t alignment) noexcept;
[[nodiscard]] void* new_array_or_null(std::size_t bytes, std::align_val_t alignment) noexcept;

}  // namespace freehold::cxx
