// SPDX-License-Identifier: MIT
/* Producer and consumer: one thread allocates messages, another frees them. Link with freehold::thread_alloc,
   freehold::thread_alloc_owner_pages or freehold::thread_alloc_article; the source is the same. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "freehold/thread_alloc.h"

enum { kMessages = 100000 };

struct message {
  struct message* next;
  int number;
};

static struct message* inbox; /* newest first; null when empty */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t sent = PTHREAD_COND_INITIALIZER;

static void* produce(void* unused) {
  for (int i = 1; i <= kMessages; ++i) {
    struct message* m = thread_alloc(sizeof *m);
    if (m == NULL) abort();
    m->number = i;
    pthread_mutex_lock(&lock);
    m->next = inbox;
    inbox = m;
    pthread_cond_signal(&sent);
    pthread_mutex_unlock(&lock);
  }
  return unused;
}

int main(void) {
  pthread_t producer;
  if (pthread_create(&producer, NULL, produce, NULL) != 0) return EXIT_FAILURE;
  long long sum = 0;
  for (int received = 0; received < kMessages;) {
    pthread_mutex_lock(&lock);
    while (inbox == NULL) pthread_cond_wait(&sent, &lock);
    struct message* m = inbox;
    inbox = NULL;
    pthread_mutex_unlock(&lock);
    while (m != NULL) {
      struct message* next = m->next;
      sum += m->number;
      ++received;
      thread_free(m); /* remote: the producer allocated it, and may have exited */
      m = next;
    }
  }
  pthread_join(producer, NULL);
  printf("%d messages, sum %lld\n", kMessages, sum);
  return EXIT_SUCCESS;
}
