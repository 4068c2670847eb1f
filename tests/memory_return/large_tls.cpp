// SPDX-License-Identifier: MIT
// A program that leaves little of a small stack to the threads that others start in it: much thread-local storage, which
// libc takes from each thread's stack. Changing the user's id then runs a signal's handler in every thread. Started by the
// tests.
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>

#include "tests/support/c_api.hpp"

namespace {

using freehold::test::CApi;
using freehold::test::opaque;

constexpr std::size_t kStorageBytes = 58'000, kMiB = std::size_t{1} << 20;
constexpr int kBlocks = 64, kPieces = 6000;
thread_local char g_storage[kStorageBytes];

void* sleep_for_ever(void*) {
  opaque(&g_storage[0])[kStorageBytes - 1] = 1;
  CApi::deallocate(CApi::allocate(100));
  for (;;) ::pause();
}

// Free memory of both kinds, whole blocks and slots between others.
void leave_free_memory() {
  for (int i = 0; i < kBlocks; ++i) {
    char* const block = static_cast<char*>(CApi::allocate(kMiB));
    for (std::size_t at = 0; at < kMiB; at += 4096) block[at] = 1;
    if (i % 16 == 0) CApi::deallocate(block);
  }
  static void* pieces[kPieces];
  for (void*& piece : pieces) *static_cast<char*>(piece = CApi::allocate(1024)) = 1;
  for (int i = 0; i < kPieces; ++i)
    if (i % 32 != 0) CApi::deallocate(pieces[i]);
}

}  // namespace

int main() {
  opaque(&g_storage[0])[0] = 1;
  pthread_t thread;
  if (pthread_create(&thread, nullptr, sleep_for_ever, nullptr) != 0) return 1;
  ::usleep(10'000);
  leave_free_memory();
  for (int i = 0; i < 20; ++i) {
    ::usleep(40'000);
    if (::setuid(::getuid()) != 0) {
      std::puts("not_allowed 1");
      break;
    }
  }
  std::puts("survived 1");
  std::fflush(stdout);
  ::_exit(0);
}
