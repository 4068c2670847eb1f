// SPDX-License-Identifier: MIT
// Allocates known amounts at known sites, and says so: "name blocks bytes" for what is in use at the end. The patterns are
// those that mislead a sampler which looks at refills alone: two sites in turns, short-lived blocks between kept ones, and a
// set whose blocks are all replaced one by one. Others are large, or of another thread, where the main thread frees half of
// them.
//   heap_sites          all of them
//   heap_sites peak     32 MiB at one site, freed before the end
//   heap_sites resized  one site, whose blocks are then made smaller where they are
//   heap_sites wait     all of them; says "ready", and ends at SIGUSR1
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SITE(name)                                     \
  __attribute__((noinline)) void* name(size_t bytes) { \
    void* volatile block = malloc(bytes);              \
    if (block == NULL) abort();                        \
    return block;                                      \
  }
SITE(small_site)
SITE(turn_a_site)
SITE(turn_b_site)
SITE(kept_site)
SITE(temporary_site)
SITE(replaced_site)
SITE(replacing_site)
SITE(medium_site)
SITE(large_site)
SITE(remote_site)
SITE(peak_site)
SITE(resized_site)

enum { kBytes = 32 << 20 };  // bytes of each site

static void say(const char* name, size_t blocks, size_t bytes_each) {
  printf("%s %zu %zu\n", name, blocks, blocks * bytes_each);
}

static void keep(const char* name, void* (*site)(size_t), size_t bytes) {
  const size_t blocks = kBytes / bytes;
  for (size_t i = 0; i < blocks; ++i) site(bytes);
  say(name, blocks, bytes);
}

static void in_turns(size_t bytes) {
  const size_t blocks = kBytes / bytes;
  for (size_t i = 0; i < blocks; ++i) {
    turn_a_site(bytes);
    turn_b_site(bytes);
  }
  say("turn_a_site", blocks, bytes);
  say("turn_b_site", blocks, bytes);
}

// Five short-lived blocks for one that stays.
static void beside_temporaries(size_t bytes) {
  const size_t blocks = kBytes / bytes;
  for (size_t i = 0; i < blocks; ++i) {
    kept_site(bytes);
    for (int pair = 0; pair < 5; ++pair) free(temporary_site(bytes));
  }
  say("kept_site", blocks, bytes);
}

static void replaced(size_t bytes) {
  const size_t blocks = kBytes / bytes;
  void** const live = calloc(blocks, sizeof *live);
  for (size_t i = 0; i < blocks; ++i) live[i] = replaced_site(bytes);
  uint32_t random = 1;
  for (size_t i = 0; i < 2 * blocks; ++i) {
    random = random * 1664525u + 1013904223u;
    const size_t at = (size_t)(random >> 8) % blocks;
    free(live[at]);
    live[at] = replacing_site(bytes);
  }
  for (size_t i = 0; i < blocks; ++i) {
    free(live[i]);
    live[i] = replacing_site(bytes);
  }
  free(live);
  say("replacing_site", blocks, bytes);
}

static const size_t kRemoteBytes = 160;
static void* allocate_remote(void* blocks) {
  for (size_t i = 0; i < 2 * (kBytes / kRemoteBytes); ++i) ((void**)blocks)[i] = remote_site(kRemoteBytes);
  return NULL;
}
static void from_another_thread(void) {
  const size_t count = 2 * (kBytes / kRemoteBytes);
  void** const blocks = calloc(count, sizeof *blocks);
  pthread_t thread;
  if (pthread_create(&thread, NULL, allocate_remote, blocks) != 0) abort();
  pthread_join(thread, NULL);
  for (size_t i = 0; i < count; i += 2) free(blocks[i]);
  free(blocks);
  say("remote_site", count / 2, kRemoteBytes);
}

static void peak(void) {
  enum { kBlocks = 32 };
  void* blocks[kBlocks];
  for (int i = 0; i < kBlocks; ++i) blocks[i] = peak_site(kBytes / kBlocks);
  for (int i = 0; i < kBlocks; ++i) free(blocks[i]);
}

// 600 bytes are more than half of the slot, so that the block stays.
static void resized(void) {
  enum { kAsked = 1000, kStays = 600, kBlocks = kBytes / kAsked };
  for (size_t i = 0; i < kBlocks; ++i) {
    void* const block = resized_site(kAsked);
    if (realloc(block, kStays) != block) abort();
  }
  say("resized_site", kBlocks, kStays);
}

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "peak") == 0) {
    peak();
    return 0;
  }
  if (argc > 1 && strcmp(argv[1], "resized") == 0) {
    resized();
    return 0;
  }
  keep("small_site", small_site, 48);
  in_turns(100);
  beside_temporaries(200);
  replaced(300);
  keep("medium_site", medium_site, 20000);
  keep("large_site", large_site, 100000);
  from_another_thread();
  if (argc > 1 && strcmp(argv[1], "wait") == 0) {
    static const char kReady[] = "ready\n";
    sigset_t end;
    int signal = 0;
    sigemptyset(&end);
    sigaddset(&end, SIGUSR1);
    sigprocmask(SIG_BLOCK, &end, NULL);
    if (write(STDOUT_FILENO, kReady, sizeof kReady - 1) < 0 || sigwait(&end, &signal) != 0) return 1;
  }
  return 0;
}
