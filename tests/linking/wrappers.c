// SPDX-License-Identifier: MIT
/* Functions of libc that use the heap before they do their work, as those of profilers, tracers and shims do. They are a
 * part of the program, or of a library that is preloaded or loaded later. WRAPPERS names what is done, letter by letter:
 *   m  mappings  f  files  q  questions about the process  c  calls by number  t  threads, keys and signals
 *   r  pthread_create allocates a record for each thread, which the thread frees
 *   l  pthread_create takes a lock that the program holds over malloc */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define WRAPPER __attribute__((visibility("default")))

extern char** environ;
static const char kNone[] = "";
static const char* wanted(void) {
  for (char** entry = environ; environ != NULL && *entry != NULL; ++entry)
    if (strncmp(*entry, "WRAPPERS=", 9) == 0) return *entry + 9;
  return kNone;
}

WRAPPER long g_wrapped_calls = 0;
static __thread int t_inside = 0; /* as in real ones: what a wrapper needs itself is not looked at */
static void use_heap(char kind) {
  if (t_inside || strchr(wanted(), kind) == NULL) return;
  t_inside = 1;
  const int error = errno;
  char* volatile blocks[12];
  for (int i = 0; i < 12; ++i) {
    blocks[i] = malloc(10 + (size_t)i * 97);
    if (blocks[i] != NULL) memset(blocks[i], i, 10 + (size_t)i * 97);
  }
  blocks[3] = realloc(blocks[3], 100000);
  for (int i = 0; i < 12; ++i) free(blocks[i]);
  __atomic_fetch_add(&g_wrapped_calls, 1, __ATOMIC_RELAXED);
  errno = error;
  t_inside = 0;
}

/* Not through dlsym, which asks for locks of the loader's: the kernel's own. */
static long kernel(long number, long a, long b, long c, long d, long e, long f) {
  long result = number;
#if defined(__x86_64__)
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall" : "+a"(result) : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
#else
  register long call __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc #0" : "+r"(x0) : "r"(call), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  result = x0;
#endif
  if (result >= 0 || result < -4095) return result;
  errno = (int)-result;
  return -1;
}
#define KERNEL(kind, number, a, b, c, d, e, f) \
  (use_heap(kind), kernel(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f)))

WRAPPER void* mmap(void* at, size_t n, int access, int flags, int fd, off_t from) {
  return (void*)KERNEL('m', SYS_mmap, at, n, access, flags, fd, from);
}
WRAPPER void* mmap64(void* at, size_t n, int access, int flags, int fd, off64_t from) {
  return (void*)KERNEL('m', SYS_mmap, at, n, access, flags, fd, from);
}
WRAPPER int munmap(void* at, size_t n) { return (int)KERNEL('m', SYS_munmap, at, n, 0, 0, 0, 0); }
WRAPPER int madvise(void* at, size_t n, int how) { return (int)KERNEL('m', SYS_madvise, at, n, how, 0, 0, 0); }
WRAPPER int mprotect(void* at, size_t n, int access) { return (int)KERNEL('m', SYS_mprotect, at, n, access, 0, 0, 0); }
WRAPPER void* mremap(void* at, size_t n, size_t m, int flags, ...) {
  va_list list;
  va_start(list, flags);
  void* to = (flags & MREMAP_FIXED) != 0 ? va_arg(list, void*) : NULL;
  va_end(list);
  return (void*)KERNEL('m', SYS_mremap, at, n, m, flags, to, 0);
}

static int mode_of(int flags, va_list list) { return (flags & O_CREAT) != 0 ? va_arg(list, int) : 0; }
#define OPEN(name)                                                          \
  WRAPPER int name(const char* path, int flags, ...) {                      \
    va_list list;                                                           \
    va_start(list, flags);                                                  \
    const int mode = mode_of(flags, list);                                  \
    va_end(list);                                                           \
    return (int)KERNEL('f', SYS_openat, AT_FDCWD, path, flags, mode, 0, 0); \
  }
OPEN(open)
OPEN(open64)
WRAPPER ssize_t read(int fd, void* to, size_t n) { return KERNEL('f', SYS_read, fd, to, n, 0, 0, 0); }
WRAPPER ssize_t pread(int fd, void* to, size_t n, off_t at) { return KERNEL('f', SYS_pread64, fd, to, n, at, 0, 0); }
WRAPPER ssize_t pread64(int fd, void* to, size_t n, off64_t at) { return KERNEL('f', SYS_pread64, fd, to, n, at, 0, 0); }
WRAPPER ssize_t write(int fd, const void* from, size_t n) { return KERNEL('f', SYS_write, fd, from, n, 0, 0, 0); }
WRAPPER int close(int fd) { return (int)KERNEL('f', SYS_close, fd, 0, 0, 0, 0, 0); }
WRAPPER int access(const char* path, int how) { return (int)KERNEL('f', SYS_faccessat, AT_FDCWD, path, how, 0, 0, 0); }
WRAPPER int fcntl(int fd, int operation, ...) {
  va_list list;
  va_start(list, operation);
  const long argument = va_arg(list, long);
  va_end(list);
  return (int)KERNEL('f', SYS_fcntl, fd, operation, argument, 0, 0, 0);
}

WRAPPER int getrlimit(__rlimit_resource_t of, struct rlimit* limit) {
  return (int)KERNEL('q', SYS_prlimit64, 0, of, NULL, limit, 0, 0);
}
WRAPPER int sched_getaffinity(pid_t of, size_t n, cpu_set_t* set) {
  const long bytes = KERNEL('q', SYS_sched_getaffinity, of, n, set, 0, 0, 0);
  if (bytes < 0) return -1;
  memset((char*)set + bytes, 0, n - (size_t)bytes);
  return 0;
}
WRAPPER int sched_getcpu(void) {
  unsigned cpu = 0;
  KERNEL('q', SYS_getcpu, &cpu, NULL, NULL, 0, 0, 0);
  return (int)cpu;
}
WRAPPER int sysinfo(struct sysinfo* info) { return (int)KERNEL('q', SYS_sysinfo, info, 0, 0, 0, 0, 0); }
WRAPPER pid_t getpid(void) { return (pid_t)KERNEL('q', SYS_getpid, 0, 0, 0, 0, 0, 0); }
WRAPPER int clock_gettime(clockid_t clock, struct timespec* time) {
  return (int)KERNEL('q', SYS_clock_gettime, clock, time, 0, 0, 0, 0);
}
WRAPPER char* getenv(const char* name) {
  use_heap('q');
  const size_t n = strlen(name);
  for (char** entry = environ; environ != NULL && *entry != NULL; ++entry)
    if (strncmp(*entry, name, n) == 0 && (*entry)[n] == '=') return *entry + n + 1;
  return NULL;
}
WRAPPER char* secure_getenv(const char* name) { return getenv(name); }

#define NEXT(name)                         \
  static __typeof__(&name) next;           \
  if (next == NULL) {                      \
    void* found = dlsym(RTLD_NEXT, #name); \
    memcpy(&next, &found, sizeof next);    \
  }
WRAPPER long sysconf(int name) {
  NEXT(sysconf)
  use_heap('q');
  return next(name);
}
WRAPPER unsigned long getauxval(unsigned long type) {
  NEXT(getauxval)
  use_heap('q');
  return next(type);
}
#if defined(WRAP_SYSCALL) /* not before libfreehold.so, whose own it would hide */
WRAPPER long syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  long of[6];
  for (int i = 0; i < 6; ++i) of[i] = va_arg(list, long);
  va_end(list);
  return KERNEL('c', number, of[0], of[1], of[2], of[3], of[4], of[5]);
}
#endif

WRAPPER int pthread_key_create(pthread_key_t* key, void (*at_end)(void*)) {
  NEXT(pthread_key_create)
  use_heap('t');
  return next(key, at_end);
}
WRAPPER int pthread_setspecific(pthread_key_t key, const void* value) {
  NEXT(pthread_setspecific)
  use_heap('t');
  return next(key, value);
}
WRAPPER void* pthread_getspecific(pthread_key_t key) {
  NEXT(pthread_getspecific)
  use_heap('t');
  return next(key);
}
WRAPPER int pthread_setcancelstate(int state, int* former) {
  NEXT(pthread_setcancelstate)
  use_heap('t');
  return next(state, former);
}
WRAPPER int pthread_sigmask(int how, const sigset_t* set, sigset_t* former) {
  NEXT(pthread_sigmask)
  use_heap('t');
  return next(how, set, former);
}
WRAPPER int pthread_attr_init(pthread_attr_t* attributes) {
  NEXT(pthread_attr_init)
  use_heap('t');
  return next(attributes);
}
WRAPPER int pthread_join(pthread_t thread, void** result) {
  NEXT(pthread_join)
  use_heap('t');
  return next(thread, result);
}

static pthread_mutex_t g_register = PTHREAD_MUTEX_INITIALIZER;
WRAPPER void wrappers_lock(void) { pthread_mutex_lock(&g_register); }
WRAPPER void wrappers_unlock(void) { pthread_mutex_unlock(&g_register); }

struct Record {
  void* (*body)(void*);
  void* argument;
};
static void* begin(void* pointer) {
  const struct Record record = *(struct Record*)pointer;
  free(pointer);
  return record.body(record.argument);
}
WRAPPER int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*), void* argument) {
  NEXT(pthread_create)
  use_heap('t');
  const int locks = strchr(wanted(), 'l') != NULL;
  if (locks) wrappers_lock();
  int error;
  if (strchr(wanted(), 'r') != NULL) {
    struct Record* const record = malloc(sizeof *record);
    record->body = body;
    record->argument = argument;
    error = next(thread, attributes, begin, record);
  } else {
    error = next(thread, attributes, body, argument);
  }
  if (locks) wrappers_unlock();
  return error;
}
