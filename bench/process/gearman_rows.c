// SPDX-License-Identifier: MIT
/* gearman_rows PORT SECONDS: empty tasks of 1 KiB in and out through the gearmand at 127.0.0.1:PORT, by the same workers and
 * clients as process_rows has: 4 processes that echo, 8 threads that call and wait. One row as JSON. */
#include <libgearman/gearman.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { kBytes = 1024, kWorkers = 4, kClients = 8 };

static in_port_t port;
static atomic_bool stop;
static atomic_ulong done, failed;

static void* echo(gearman_job_st* job, void* context, size_t* bytes, gearman_return_t* result) {
  (void)context;
  *bytes = gearman_job_workload_size(job);
  void* copy = malloc(*bytes);
  if (copy != NULL) memcpy(copy, gearman_job_workload(job), *bytes);
  *result = copy != NULL ? GEARMAN_SUCCESS : GEARMAN_ERROR;
  return copy;
}

static void work(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  gearman_worker_st* worker = gearman_worker_create(NULL);
  if (getppid() != parent || worker == NULL) _exit(1);
  gearman_worker_add_server(worker, "127.0.0.1", port);
  gearman_worker_add_function(worker, "freehold_echo", 0, echo, NULL);
  while (gearman_worker_work(worker) == GEARMAN_SUCCESS) {
  }
  _exit(1);
}

static void* call(void* unused) {
  (void)unused;
  char input[kBytes];
  memset(input, 'x', sizeof input);
  gearman_client_st* client = gearman_client_create(NULL);
  gearman_client_add_server(client, "127.0.0.1", port);
  while (!atomic_load(&stop)) {
    size_t bytes = 0;
    gearman_return_t result = GEARMAN_SUCCESS;
    void* output = gearman_client_do(client, "freehold_echo", NULL, input, sizeof input, &bytes, &result);
    atomic_fetch_add(result == GEARMAN_SUCCESS && bytes == kBytes ? &done : &failed, 1);
    free(output);
  }
  gearman_client_free(client);
  return NULL;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  port = (in_port_t)atoi(argv[1]);
  const pid_t self = getpid();
  for (int i = 0; i < kWorkers; ++i)
    if (fork() == 0) work(self);
  pthread_t clients[kClients];
  const double begin = now();
  for (int i = 0; i < kClients; ++i) pthread_create(&clients[i], NULL, call, NULL);
  const double seconds = atof(argv[2]);
  struct timespec time = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
  nanosleep(&time, NULL);
  atomic_store(&stop, 1);
  for (int i = 0; i < kClients; ++i) pthread_join(clients[i], NULL);
  printf("{\"row\": \"throughput\", \"clients\": %d, \"workers\": %d, \"under_way\": 1, \"tasks_per_second\": %.0f}\n",
         kClients, kWorkers, (double)done / (now() - begin));
  return failed == 0 && done > 0 ? 0 : 1;
}
