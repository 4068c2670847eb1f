// SPDX-License-Identifier: MIT
// The malloc family as C symbols: argument checks that the standards ask for, then the engine. Beside them the functions of
// libc before which the engine has something to do: prctl, syscall, tgkill, vfork. They are in this object because a linker
// takes a member of an archive only for a symbol that something refers to, and a library that confines its program refers to
// libc's alone.
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>

#include <bit>

#include "freehold/alloc/engine.hpp"
#include "freehold/alloc/front/fast_path.hpp"
#include "freehold/alloc/observe/profile.hpp"
#include "freehold/malloc.h"
#include "freehold/malloc/export.hpp"
#include "freehold/os/pages.hpp"
#include "freehold/os/sandbox.hpp"
#include "freehold/os/system_call.hpp"

namespace {

namespace alloc = freehold::alloc;

bool is_power_of_two(size_t n) noexcept { return n != 0 && (n & (n - 1)) == 0; }

void* fail(int error) noexcept {
  errno = error;
  return nullptr;
}

}  // namespace

extern "C" {

FREEHOLD_FAST_PATH FREEHOLD_EXPORT void* malloc(size_t bytes) FREEHOLD_LIBC_NOEXCEPT {
  return alloc::allocate_inline(bytes);
}

FREEHOLD_FAST_PATH FREEHOLD_EXPORT void free(void* block) FREEHOLD_LIBC_NOEXCEPT { alloc::deallocate_inline(block); }

FREEHOLD_EXPORT void* calloc(size_t count, size_t bytes) FREEHOLD_LIBC_NOEXCEPT {
  size_t total;
  return __builtin_mul_overflow(count, bytes, &total) ? fail(ENOMEM) : alloc::allocate_zeroed(total);
}

FREEHOLD_EXPORT void* realloc(void* block, size_t bytes) FREEHOLD_LIBC_NOEXCEPT {
  if (bytes == 0 && block != nullptr) {  // as glibc: free and return null
    alloc::deallocate(block);
    return nullptr;
  }
  return alloc::reallocate(block, bytes);
}

FREEHOLD_EXPORT void* reallocarray(void* block, size_t count, size_t bytes) FREEHOLD_LIBC_NOEXCEPT {
  size_t total;
  return __builtin_mul_overflow(count, bytes, &total) ? fail(ENOMEM) : realloc(block, total);
}

FREEHOLD_EXPORT int posix_memalign(void** out, size_t alignment, size_t bytes) FREEHOLD_LIBC_NOEXCEPT {
  if (!is_power_of_two(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
  void* block = alloc::allocate_aligned(alignment, bytes);
  if (block == nullptr) return ENOMEM;  // and errno says so, too, as with glibc: programs look there
  *out = block;
  return 0;
}

// C23: an alignment that does not exist is refused; the size need not be a multiple of it.
FREEHOLD_EXPORT void* aligned_alloc(size_t alignment, size_t bytes) FREEHOLD_LIBC_NOEXCEPT {
  return is_power_of_two(alignment) ? alloc::allocate_aligned(alignment, bytes) : fail(EINVAL);
}

// Rounds the alignment up to a power of two, as glibc does.
FREEHOLD_EXPORT void* memalign(size_t alignment, size_t bytes) FREEHOLD_LIBC_NOEXCEPT {
  constexpr size_t kLargest = SIZE_MAX / 2 + 1;
  return alignment <= kLargest ? alloc::allocate_aligned(std::bit_ceil(alignment), bytes) : fail(EINVAL);
}

FREEHOLD_EXPORT void* valloc(size_t bytes) FREEHOLD_LIBC_NOEXCEPT {
  return alloc::allocate_aligned(freehold::os::page_bytes(), bytes);
}

FREEHOLD_EXPORT void* pvalloc(size_t bytes) noexcept {
  const size_t page = freehold::os::page_bytes();
  if (bytes > SIZE_MAX - page) return fail(ENOMEM);
  return alloc::allocate_aligned(page, bytes == 0 ? page : (bytes + page - 1) / page * page);
}

FREEHOLD_EXPORT size_t malloc_usable_size(void* block) FREEHOLD_LIBC_NOEXCEPT { return alloc::usable_size(block); }

// C23. The size and alignment are not needed, since the engine knows those of the block: they are looked at where that is
// free.
FREEHOLD_EXPORT void free_sized(void* block, size_t bytes) noexcept {
  if (!alloc::push_inline(block, alloc::g_span_count)) [[unlikely]]
    alloc::deallocate_as(block, {alloc::Family::kMalloc, bytes, 0});
}
FREEHOLD_EXPORT void free_aligned_sized(void* block, size_t alignment, size_t bytes) noexcept {
  if (!alloc::push_inline(block, alloc::g_span_count)) [[unlikely]]
    alloc::deallocate_as(block, {alloc::Family::kMalloc, bytes, alignment});
}
// An old name of free that some programs still call.
FREEHOLD_EXPORT void cfree(void* block) noexcept { alloc::deallocate_inline(block); }

// The names under which glibc exports its own malloc beside the standard ones. A program that takes a block by one of them
// (to get round a wrapper of malloc, say) gives it back by either.
FREEHOLD_EXPORT void* __libc_malloc(size_t bytes) noexcept { return alloc::allocate_inline(bytes); }
FREEHOLD_EXPORT void __libc_free(void* block) noexcept { alloc::deallocate_inline(block); }
FREEHOLD_EXPORT void __libc_cfree(void* block) noexcept { alloc::deallocate_inline(block); }
FREEHOLD_EXPORT void* __libc_calloc(size_t count, size_t bytes) noexcept { return calloc(count, bytes); }
FREEHOLD_EXPORT void* __libc_realloc(void* block, size_t bytes) noexcept { return realloc(block, bytes); }
FREEHOLD_EXPORT void* __libc_memalign(size_t alignment, size_t bytes) noexcept { return memalign(alignment, bytes); }
FREEHOLD_EXPORT void* __libc_valloc(size_t bytes) noexcept { return valloc(bytes); }
FREEHOLD_EXPORT void* __libc_pvalloc(size_t bytes) noexcept { return pvalloc(bytes); }
FREEHOLD_EXPORT int __posix_memalign(void** out, size_t alignment, size_t bytes) noexcept {
  return posix_memalign(out, alignment, bytes);
}

FREEHOLD_EXPORT int malloc_trim(size_t) noexcept { return alloc::trim() != 0 ? 1 : 0; }

// ---- malloc.h ---------------------------------------------------------------------------------------------------------

FREEHOLD_EXPORT int freehold_is_active(void) {
  // Through volatile pointers, so that the compiler calls whichever malloc the linker has chosen.
  void* (*volatile allocate)(size_t) = malloc;
  void (*volatile release)(void*) = free;
  void* block = allocate(1);
  const int ours = block != nullptr && alloc::usable_size(block) != 0 ? 1 : 0;
  release(block);
  return ours;
}

// libc's, with the same effect. A program that confines itself by a filter of system calls begins so, by libseccomp too: the
// filter may end it for a call that malloc makes otherwise.
FREEHOLD_EXPORT int prctl(int operation, ...) FREEHOLD_LIBC_NOEXCEPT {
  va_list list;
  va_start(list, operation);
  unsigned long of[4];
  for (unsigned long& argument : of) argument = va_arg(list, unsigned long);
  va_end(list);
  if (freehold::os::announces_filter(operation)) alloc::confine();
  return freehold::os::kernel::prctl(operation, of[0], of[1], of[2], of[3]);
}

// The same for a program that calls the system by number, as libseccomp does where no_new_privs is not wanted.
FREEHOLD_EXPORT long syscall(long number, ...) FREEHOLD_LIBC_NOEXCEPT {
  va_list list;
  va_start(list, number);
  long of[6];
  for (long& argument : of) argument = va_arg(list, long);
  va_end(list);
  if (freehold::os::announces_filter(number, of[0])) alloc::confine();
  if (const int at = freehold::os::kernel::signalled_argument(number); at >= 0)
    alloc::before_signal(static_cast<pid_t>(of[at]), of[at + 1]);
  return freehold::os::system_call(number, of[0], of[1], of[2], of[3], of[4], of[5]);
}

// libc's, with the same effect. A program that stops all threads which /proc lists waits until each has answered: it is told
// that Freehold's own is not there, and soon that is true.
FREEHOLD_EXPORT int tgkill(pid_t process, pid_t thread, int signal) {
  alloc::before_signal(thread, signal);
  return freehold::os::kernel::tgkill(process, thread, signal);
}

// libc's, to which this jumps: the child comes back to the caller first, and the parent needs the same return address then.
[[gnu::visibility("hidden"), gnu::used]] void freehold_before_vfork(void) { alloc::before_vfork(); }
#if defined(__GLIBC__) && defined(__x86_64__)
asm(".pushsection .text; .globl vfork; .type vfork, @function; vfork: .cfi_startproc; endbr64;"
    "subq $8, %rsp; .cfi_adjust_cfa_offset 8; call freehold_before_vfork; addq $8, %rsp; .cfi_adjust_cfa_offset -8;"
    "jmp __vfork@PLT; .cfi_endproc; .size vfork, . - vfork; .popsection");
#elif defined(__GLIBC__) && defined(__aarch64__)  // where no cache is a CPU's
asm(".pushsection .text; .globl vfork; .type vfork, %function; vfork: .cfi_startproc; hint #34; b __vfork; .cfi_endproc;"
    ".size vfork, . - vfork; .popsection");
#endif

FREEHOLD_EXPORT size_t freehold_trim(void) { return alloc::trim(); }

FREEHOLD_EXPORT size_t freehold_idle(void) { return alloc::idle(); }

FREEHOLD_EXPORT void freehold_on_memory_pressure(freehold_memory_callback callback, void* context) {
  alloc::set_memory_callback({callback, context});
}

FREEHOLD_EXPORT int freehold_worth_moving(const void* block) { return alloc::is_worth_moving(block) ? 1 : 0; }

FREEHOLD_EXPORT int freehold_check_all(void) {
  const size_t damaged = alloc::check_all();
  return damaged < INT_MAX ? static_cast<int>(damaged) : INT_MAX;
}

FREEHOLD_EXPORT int freehold_profile_start(size_t distance) { return alloc::start_profile(distance) ? 0 : -1; }

FREEHOLD_EXPORT void freehold_profile_stop(void) { alloc::stop_profile(); }

FREEHOLD_EXPORT int freehold_profile_write(const char* path) {
  if (path == nullptr) {
    errno = EINVAL;
    return -1;
  }
  return alloc::write_profile(path) ? 0 : -1;
}

FREEHOLD_EXPORT size_t freehold_set_limit(size_t bytes) { return alloc::set_limit(bytes); }

}  // extern "C"
