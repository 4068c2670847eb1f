/* The process pool for C and for every language that can load a shared library (libfreehold_process.so). No state but what
 * the handles hold; every function may be called from any thread at any time, a handle's end excepted. docs/process.md says
 * what happens when something fails.
 *
 *   freehold_pool_options options = {.size = sizeof options, .component = "./slow.so"};
 *   char error[256];
 *   freehold_pool* pool = freehold_pool_open(&options, error, sizeof error);
 *   int result = freehold_pool_call(pool, input, input_bytes, output, sizeof output, &output_bytes, NULL);
 *   freehold_pool_close(pool); */
#ifndef FREEHOLD_PROCESS_FREEHOLD_PROCESS_H
#define FREEHOLD_PROCESS_FREEHOLD_PROCESS_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct freehold_pool freehold_pool;
typedef struct freehold_task freehold_task;

/* What is 0 has its default. */
typedef struct freehold_pool_options {
  size_t size;                    /* sizeof(freehold_pool_options), so that later versions may add to the end */
  const char* component;          /* a shared object that exports freehold_run (component.h) */
  const char* worker_program;     /* which loads it; default: freehold-worker where it can be found */
  uint32_t max_workers;           /* default: two for each CPU that this process may use */
  uint32_t entries;               /* tasks at a time, waiting and running; default 256 */
  uint64_t max_input, max_output; /* bytes of one task; default 1 MiB */
  uint32_t attempts;              /* of a task whose workers die; default 3 */
  uint32_t reserved;              /* 0 */
  uint64_t limit_ms;              /* a task may run for so long; default: for ever */
  uint64_t idle_ms;               /* a worker without a task ends after so long; default 10 s */
  uint64_t max_tasks, max_rss,
      max_age_ms;    /* a worker is replaced after so many tasks, bytes, milliseconds; default: never */
  uint64_t kill_rss; /* a worker is killed in a task beyond so many bytes; default: never */
  /* Called by the pool's thread with one line for what happens to workers and their tasks; default: none */
  void (*log)(void* context, const char* line);
  void* log_context;
  uint32_t min_workers;         /* kept even when there is no work; default 0 */
  uint32_t keep_standard_error; /* 1: the last lines of a dead worker's standard error follow in the log; default 0 */
  uint64_t load_limit_ms;       /* a worker that has not loaded by then is killed; default 60 s */
  const char* const* command;   /* instead of a component: a worker program of one's own and its arguments, then NULL; it
                                   calls freehold_worker_run */
  const int* retry_codes;       /* a task for which the component returns one of these runs again; up to 4, then 0; NULL:
                                   for each number */
  uint32_t retry_attempts;      /* so often in all; default: not at all */
  uint32_t retry_delay_ms;      /* before the next one */
  const char* memory_cgroup;    /* with kill_rss: a memory cgroup in which the pool may make one for each worker */
  uint32_t no_network;          /* 1: workers cannot make sockets */
  uint32_t only_these_files;    /* 1: nor open others than these files and folders, and the system's libraries */
  const char* const* readable;  /* then NULL */
  const char* const* writable;  /* then NULL; readable, too */
} freehold_pool_options;

/* How a task ended, or why there is none. */
enum {
  FREEHOLD_OK = 0,
  FREEHOLD_SIGNAL = 1,           /* its worker was killed; detail: the signal */
  FREEHOLD_EXIT = 2,             /* its worker exited; detail: the status */
  FREEHOLD_DEADLINE = 3,         /* detail: the limit in milliseconds */
  FREEHOLD_MEMORY = 4,           /* detail: the limit in MiB */
  FREEHOLD_COMPONENT = 5,        /* the component refused it; detail: what it returned */
  FREEHOLD_NO_WORKER = 6,        /* no worker can be started, or the pool has ended */
  FREEHOLD_CORRUPT = 7,          /* the component has written into the pool's memory, and the task is lost */
  FREEHOLD_FULL = 32,            /* the table, for as long as the caller would wait */
  FREEHOLD_TOO_LARGE = 33,       /* the input */
  FREEHOLD_OUTPUT_TOO_SMALL = 34 /* the caller's buffer; *output_bytes says what is needed */
};
#define FREEHOLD_FOR_EVER UINT64_MAX

/* In a worker program of one's own: runs tasks by `component`, with the signature of component.h, until it is time to end.
 * Returns the exit status, which the program has to end with; another one than 0 at once if no pool has started it. */
int freehold_worker_run(int (*component)(const void* input, size_t input_bytes, void* output, size_t capacity,
                                         size_t* output_bytes));

/* Returns NULL if the pool cannot be, and why in `error` (may be NULL). */
freehold_pool* freehold_pool_open(const freehold_pool_options* options, char* error, size_t error_bytes);
/* The pool that another process of this user serves by that name, freehold workers --serve NAME. All that is said of tasks
 * holds; the supervisor's figures are the server's. Returns NULL if there is none, and why in `error` (may be NULL). */
freehold_pool* freehold_pool_attach(const char* name, char* error, size_t error_bytes);
/* Every task of the pool must be over with. NULL does nothing. */
void freehold_pool_close(freehold_pool* pool);

/* Submits a task and waits for its output. `detail` may be NULL. With FREEHOLD_OUTPUT_TOO_SMALL the output is lost: give
 * max_output bytes of room, or submit and get. */
int freehold_pool_call(freehold_pool* pool, const void* input, size_t input_bytes, void* output, size_t capacity,
                       size_t* output_bytes, int* detail);

/* Submits a task; waits for so long while the table is full. FREEHOLD_OK, FULL, TOO_LARGE or NO_WORKER. */
int freehold_pool_submit(freehold_pool* pool, const void* input, size_t input_bytes, uint64_t wait_ms, freehold_task** task);
/* Of one task; what is 0 has the pool's default. */
typedef struct freehold_task_options {
  size_t size;            /* sizeof(freehold_task_options) */
  uint64_t wait_ms;       /* waits for so long while the table is full; 0: refuses at once */
  uint64_t limit_ms;      /* it may run for so long, each attempt */
  uint64_t within_ms;     /* it fails unless it is over so long after its submission */
  uint32_t attempts;      /* in all, if its workers die */
  uint32_t priority;      /* FREEHOLD_NORMAL, FREEHOLD_HIGH, FREEHOLD_LOW */
  const int* retry_codes; /* as of the pool; with retry_attempts 0 the pool's hold */
  uint32_t retry_attempts;
  uint32_t retry_delay_ms;
} freehold_task_options;
enum { FREEHOLD_NORMAL = 0, FREEHOLD_HIGH = 1, FREEHOLD_LOW = 2 }; /* which of two tasks that wait begins first */
/* The same by options; NULL: the pool's, and waits while the table is full. */
int freehold_pool_submit_with(freehold_pool* pool, const void* input, size_t input_bytes,
                              const freehold_task_options* options, freehold_task** task);
/* Waits for at most so long. Returns 1 if the task is over, else 0. */
int freehold_task_wait(freehold_task* task, uint64_t wait_ms);
/* Waits for the task and takes its output; the task is gone, unless the result is FREEHOLD_OUTPUT_TOO_SMALL. */
int freehold_task_get(freehold_task* task, void* output, size_t capacity, size_t* output_bytes, int* detail);
/* Calls `function` once when the task is over, on a thread of the pool's own, one after the other; at the latest when the
 * pool is closed. The task is gone; `output` is there until the function returns. What freehold_task_get says goes for
 * `result` and `detail`. */
void freehold_task_then(freehold_task* task,
                        void (*function)(void* context, int result, int detail, const void* output, size_t output_bytes),
                        void* context);
/* The task is gone, and its output nobody's. NULL does nothing. */
void freehold_task_cancel(freehold_task* task);
/* The same, and if it runs, its worker is killed. */
void freehold_task_kill(freehold_task* task);

/* Refuses tasks from now on, and waits until those that were accepted are over, or for so long. Returns 1 if they are. */
int freehold_pool_drain(freehold_pool* pool, uint64_t wait_ms);
/* The pool's figures, cut to fit: 'j' for one JSON object, 'p' for Prometheus' text format. Returns the whole length. */
size_t freehold_pool_metrics(freehold_pool* pool, char format, char* text, size_t bytes);
/* Why no worker can be started at the moment, cut to fit; empty while all is well. Returns its whole length. */
size_t freehold_pool_error(freehold_pool* pool, char* text, size_t bytes);
/* One line for people, cut to fit. Returns its whole length. */
size_t freehold_pool_status(freehold_pool* pool, char* text, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
