// SPDX-License-Identifier: MIT
// A part of libfreehold-pad.so: with FREEHOLD_TRIM_MS a thread asks the program's malloc every so many milliseconds to give
// back whole pages that are free (malloc_trim). The program's malloc had kept for itself what the
// program then holds less.
//
// The thread takes no signals, and is not there in children of fork.
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>

#include <cstdlib>
#include <ctime>

namespace {

using Trim = int(std::size_t);
constinit Trim* g_trim = nullptr;
constinit timespec g_pause{};

void* trim_for_ever(void*) noexcept {
  for (;;) {
    ::nanosleep(&g_pause, nullptr);
    g_trim(0);
  }
}

[[gnu::constructor]] void begin_to_trim() {
  const char* const pause = std::getenv("FREEHOLD_TRIM_MS");
  if (pause == nullptr) return;
  const long ms = std::strtol(pause, nullptr, 10);
  g_trim = reinterpret_cast<Trim*>(::dlsym(RTLD_DEFAULT, "malloc_trim"));
  if (g_trim == nullptr || ms <= 0) return;
  g_pause = {ms / 1000, ms % 1000 * 1'000'000};
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  if (::pthread_create(&thread, nullptr, trim_for_ever, nullptr) == 0) ::pthread_detach(thread);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace
