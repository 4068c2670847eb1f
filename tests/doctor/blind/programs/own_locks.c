// SPDX-License-Identifier: MIT
// Does: threads update a table that one lock of the program's guards, and compute a little between. The wrapper of the lock
// is the parameter.
// Why:  by construction: no thread calls malloc after the start, and about four fifths of the work are
// done inside the lock.
// Case own_mutex: {n} mutex 2400000
//   Truth: own-lock
//   Right: own-lock
//   Seen: strace -f -c of a quarter of it: 128 futex calls, no mmap, madvise or brk besides start-up
// Case own_pthread_spin: {n} spin 2400000
//   Truth: own-lock
//   Right: own-lock
// Case own_c11_mtx: {n} mtx 2400000
//   Truth: own-lock
//   Right: own-lock
//   Seen: strace -f -c of a quarter of it: 134 futex calls, no mmap, madvise or brk besides start-up
// Case own_rwlock: {n} rwlock 2400000
//   Truth: own-lock
//   Right: own-lock
//   Seen: strace -f -c of a quarter of it: 114 futex calls, no mmap, madvise or brk besides start-up
// Case own_semaphore: {n} semaphore 2400000
//   Truth: own-lock
//   Right: own-lock
//   Seen: strace -f -c of a quarter of it: 95 futex calls, no mmap, madvise or brk besides start-up
// Case own_recursive_by_cpus: 2 recursive 2400000
//   Truth: own-lock
//   Right: own-lock serial
#define _GNU_SOURCE
#include <semaphore.h>
#include <threads.h>

#include "tests/doctor/blind/programs/common.h"

enum kind { kMutex, kSpin, kMtx, kRwlock, kSemaphore, kRecursive, kKinds };
static const char* const kNames[kKinds] = {"mutex", "spin", "mtx", "rwlock", "semaphore", "recursive"};
static enum kind kind;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_spinlock_t spin;
static mtx_t mtx;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t semaphore;
static uint64_t table[512];
static long updates_of_each;

static void lock(void) {
  switch (kind) {
    case kMutex: pthread_mutex_lock(&mutex); break;
    case kSpin: pthread_spin_lock(&spin); break;
    case kMtx: mtx_lock(&mtx); break;
    case kRwlock: pthread_rwlock_wrlock(&rwlock); break;
    case kSemaphore: sem_wait(&semaphore); break;
    default: pthread_mutex_lock(&recursive); break;
  }
}

static void unlock(void) {
  switch (kind) {
    case kMutex: pthread_mutex_unlock(&mutex); break;
    case kSpin: pthread_spin_unlock(&spin); break;
    case kMtx: mtx_unlock(&mtx); break;
    case kRwlock: pthread_rwlock_unlock(&rwlock); break;
    case kSemaphore: sem_post(&semaphore); break;
    default: pthread_mutex_unlock(&recursive); break;
  }
}

static void* work(void* index) {
  uint64_t value = 88172645463325252u + (uintptr_t)index;
  for (long i = 0; i < updates_of_each; ++i) {
    value = mix(value, 40);
    lock();
    table[value % 512] = mix(table[value % 512] + value, 200);
    unlock();
  }
  return NULL;
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int threads = atoi(argv[1]);
  while (kind < kKinds && strcmp(kNames[kind], argv[2])) ++kind;
  if (kind == kKinds) return 2;
  updates_of_each = atol(argv[3]) / threads;
  pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
  mtx_init(&mtx, mtx_plain);
  sem_init(&semaphore, 0, 1);
  in_threads(threads, work);
  printf("%s: %llx\n", kNames[kind], (unsigned long long)table[7]);
}
