// SPDX-License-Identifier: MIT
// A C program under LD_PRELOAD may load C++ plugins later, and their libstdc++ with them: an interpreter and its extension
// modules. Their operator new is ours, but our weak references were resolved long before. So the runtime is looked for when
// memory is exhausted, and only then. Part of libfreehold.so alone.
#include <dlfcn.h>

#include <initializer_list>

#include "freehold/malloc/cxx_runtime.hpp"

namespace freehold::cxx {

CxxRuntime find_loaded_cxx_runtime() noexcept {
  for (const char* name : {"libstdc++.so.6", "libc++.so.1"}) {
    void* const library = ::dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) continue;
    CxxRuntime found;
    found.get_new_handler = reinterpret_cast<decltype(found.get_new_handler)>(::dlsym(library, "_ZSt15get_new_handlerv"));
    found.throw_bad_alloc = reinterpret_cast<decltype(found.throw_bad_alloc)>(::dlsym(library, "_ZSt17__throw_bad_allocv"));
    ::dlclose(library);  // the caller's own library keeps it loaded
    if (found.throw_bad_alloc != nullptr) return found;
  }
  return {};
}

}  // namespace freehold::cxx
