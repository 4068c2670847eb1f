// SPDX-License-Identifier: MIT
// Does: threads take nodes from the program's own free list and put them back; one lock of the program's guards the list.
// Why:  malloc is called once for 4096 nodes at the start and never after, so no malloc can change it; all threads need the
// list's lock for each node.
// Case own_freelist_mutex: {n} mutex 20000000
//   Truth: own-lock
//   Right: own-lock
//   Seen: strace -f -c of a tenth of it: 20 futex calls (one CPU was free), no mmap, madvise or brk besides start-up
// Case own_freelist_spin: {n} spin 6000000
//   Truth: own-lock
//   Right: own-lock
#include "tests/doctor/blind/programs/common.h"

struct node {
  struct node* next;
  char payload[56];
};

static struct node* free_nodes;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_spinlock_t spin;
static int spins;
static long rounds;

static void lock(void) { spins ? pthread_spin_lock(&spin) : pthread_mutex_lock(&mutex); }
static void unlock(void) { spins ? pthread_spin_unlock(&spin) : pthread_mutex_unlock(&mutex); }

static struct node* take(void) {
  lock();
  struct node* node = free_nodes;
  free_nodes = node->next;
  unlock();
  return node;
}

static void put_back(struct node* node) {
  lock();
  node->next = free_nodes;
  free_nodes = node;
  unlock();
}

static void* work(void* unused) {
  struct node* mine[8];
  for (long i = 0; i < rounds; ++i) {
    for (int k = 0; k < 8; ++k) (mine[k] = take())->payload[0] = (char)i;
    for (int k = 0; k < 8; ++k) put_back(mine[k]);
  }
  return unused;
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int threads = atoi(argv[1]);
  spins = !strcmp(argv[2], "spin");
  rounds = atol(argv[3]) / 8 / threads;
  pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
  struct node* nodes = malloc(4096 * sizeof *nodes);
  for (int i = 0; i < 4096; ++i) {
    nodes[i].next = free_nodes;
    free_nodes = &nodes[i];
  }
  in_threads(threads, work);
  printf("%ld rounds by each of %d threads\n", rounds, threads);
}
