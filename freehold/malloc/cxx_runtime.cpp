// SPDX-License-Identifier: MIT
// The one file that is compiled with exceptions, once for each library: FREEHOLD_CXX_RUNTIME_OPTIONAL in libfreehold.so,
// where every reference to the runtime is weak, those of the catch clauses by word to the assembler.
#include "freehold/malloc/cxx_runtime.hpp"

#if defined(FREEHOLD_CXX_RUNTIME_OPTIONAL)
#define FREEHOLD_OF_THE_RUNTIME [[gnu::weak]]
asm(".weak __gxx_personality_v0\n\t"
    ".weak __cxa_begin_catch\n\t"
    ".weak __cxa_end_catch\n\t"
    ".weak _ZSt9terminatev\n\t"  // Clang's
    ".weak _Unwind_Resume");
#else
#define FREEHOLD_OF_THE_RUNTIME
#endif

extern "C" {
FREEHOLD_OF_THE_RUNTIME std::new_handler _ZSt15get_new_handlerv() noexcept;  // std::get_new_handler
FREEHOLD_OF_THE_RUNTIME void _ZSt17__throw_bad_allocv();  // std::__throw_bad_alloc, of libstdc++ and of libc++
void* __cxa_begin_catch(void*) noexcept;
}

namespace freehold::cxx {

CxxRuntime find_cxx_runtime() noexcept {
#if defined(FREEHOLD_CXX_RUNTIME_OPTIONAL)
  if (_ZSt17__throw_bad_allocv == nullptr) return find_loaded_cxx_runtime();
#endif
  return {_ZSt15get_new_handlerv, _ZSt17__throw_bad_allocv};
}

bool returns(std::new_handler handler) noexcept {
  // Read at run time: the compiler assumes that a function which is not declared weak exists.
  void* (*volatile begin_catch)(void*) noexcept = &__cxa_begin_catch;
  if (begin_catch == nullptr) return false;
  try {
    handler();
    return true;
  } catch (...) {
    return false;
  }
}

void* new_or_null(std::size_t bytes) noexcept {
  try {
    return ::operator new(bytes);
  } catch (...) {
    return nullptr;
  }
}

void* new_array_or_null(std::size_t bytes) noexcept {
  try {
    return ::operator new[](bytes);
  } catch (...) {
    return nullptr;
  }
}

void* new_or_null(std::size_t bytes, std::align_val_t alignment) noexcept {
  try {
    return ::operator new(bytes, alignment);
  } catch (...) {
    return nullptr;
  }
}

void* new_array_or_null(std::size_t bytes, std::align_val_t alignment) noexcept {
  try {
    return ::operator new[](bytes, alignment);
  } catch (...) {
    return nullptr;
  }
}

}  // namespace freehold::cxx
