// SPDX-License-Identifier: MIT
// A program for the probe to watch: two children share a mutex, of which the one that waits waits for nearly all of the
// other's turn. Nothing is allocated, and the children end by _exit(). Takes 0.4 s.
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void take_turns(pthread_mutex_t* mutex) {
  const struct timespec turn = {.tv_nsec = 10 * 1000 * 1000};
  for (int i = 0; i < 20; ++i) {
    pthread_mutex_lock(mutex);
    nanosleep(&turn, NULL);
    pthread_mutex_unlock(mutex);
    sched_yield();
  }
}

int main(void) {
  pthread_mutex_t* const mutex = mmap(NULL, sizeof *mutex, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (mutex == MAP_FAILED) return 1;
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(mutex, &attributes);
  for (int i = 0; i < 2; ++i)
    if (fork() == 0) {
      take_turns(mutex);
      _exit(0);
    }
  int status = 0, failed = 0;
  while (wait(&status) > 0) failed |= status;
  return failed;
}
