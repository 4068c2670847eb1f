// SPDX-License-Identifier: MIT
/* Freehold's process pool for C, and for every language that can load a shared library (libfreehold_process.so): runs a
 * component that crashes or does not scale in supervised worker processes. docs/process.md is the guide.
 *
 *   freehold_pool_options options = {.size = sizeof options, .component = "./slow.so"};
 *   char error[256];
 *   freehold_pool* pool = freehold_pool_open(&options, error, sizeof error);
 *   int result = freehold_pool_call(pool, input, input_bytes, output, sizeof output, &output_bytes, NULL);
 *   freehold_pool_close(pool);
 *
 * There is no state outside the handles. Threads: every function may be called from any thread at any time; a handle must
 * not be closed while another thread uses it, and a task belongs to one thread at a time. */
#ifndef FREEHOLD_PROCESS_H
#define FREEHOLD_PROCESS_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// A pool of this process, or the connection to one of another process.
typedef struct freehold_pool freehold_pool;
/// A submitted task.
typedef struct freehold_task freehold_task;

/// How a pool runs its workers. A member that is 0 has its default.
typedef struct freehold_pool_options {
  size_t size;                 ///< sizeof(freehold_pool_options), so that later versions may add members at the end
  const char* component;       ///< a shared object that exports freehold_run (component.h)
  const char* worker_program;  ///< loads the component; default: freehold-worker where it can be found
  uint32_t max_workers;        ///< default: two for each CPU that this process may use
  uint32_t entries;            ///< tasks at a time, waiting and running; default: 256
  uint64_t max_input;          ///< bytes of one input; default: 1 MiB
  uint64_t max_output;         ///< bytes of one output; default: 1 MiB
  uint32_t attempts;           ///< runs of a task whose workers die; default: 3
  uint32_t reserved;           ///< 0
  uint64_t limit_ms;           ///< time limit of one run; default: none
  uint64_t idle_ms;            ///< a worker without a task ends after so long; default: 10 s
  uint64_t max_tasks;          ///< a worker ends after so many tasks; default: never
  uint64_t max_rss;            ///< a worker ends between two tasks when it holds so many bytes; default: never
  uint64_t max_age_ms;         ///< a worker ends after so long, between two tasks; default: never
  uint64_t kill_rss;           ///< a worker is killed, even in a task, when it holds so many bytes; default: never
  /// Called by the pool's thread with one line for each event of workers and their tasks; default: none.
  void (*log)(void* context, const char* line);
  void* log_context;             ///< the first argument of log
  uint32_t min_workers;          ///< kept even when there is no work; default: 0
  uint32_t keep_standard_error;  ///< 1: the last lines of a dead worker's standard error follow in the log; default: 0
  uint64_t load_limit_ms;        ///< a worker that has not started by then is killed; default: 60 s
  /// Instead of a component: a worker program, which calls freehold_worker_run(), and its arguments; ends with NULL.
  const char* const* command;
  /// A task runs again if the component returns one of these numbers; up to 4, ends with 0; NULL: for every number.
  const int* retry_codes;
  uint32_t retry_attempts;      ///< runs in all of such a task; default: no retry
  uint32_t retry_delay_ms;      ///< before the next run
  const char* memory_cgroup;    ///< with kill_rss: a memory cgroup in which the pool may make one for each worker
  uint32_t no_network;          ///< 1: workers cannot make sockets
  uint32_t only_these_files;    ///< 1: workers open only these files and folders, and the system's libraries
  const char* const* readable;  ///< those files and folders; ends with NULL
  const char* const* writable;  ///< the same, for writing and reading; ends with NULL
} freehold_pool_options;

/// How a task ended, or why there is none.
enum {
  FREEHOLD_OK = 0,                 ///< it has output
  FREEHOLD_SIGNAL = 1,             ///< its worker was killed; detail: the signal
  FREEHOLD_EXIT = 2,               ///< its worker exited; detail: the status
  FREEHOLD_DEADLINE = 3,           ///< it ran beyond its time limit; detail: the limit in milliseconds
  FREEHOLD_MEMORY = 4,             ///< its worker held more memory than allowed; detail: the limit in MiB
  FREEHOLD_COMPONENT = 5,          ///< the component rejected it; detail: the number that the component returned
  FREEHOLD_NO_WORKER = 6,          ///< no worker can be started, or the pool has ended
  FREEHOLD_CORRUPT = 7,            ///< a component has written into the pool's memory, and the task is lost
  FREEHOLD_FULL = 32,              ///< the table stayed full for as long as the caller would wait
  FREEHOLD_TOO_LARGE = 33,         ///< the input is longer than max_input
  FREEHOLD_OUTPUT_TOO_SMALL = 34,  ///< the caller's buffer is; *output_bytes is the length that is needed
  FREEHOLD_NO_MEMORY = 35          ///< less memory is left than the input needs, or a result that must leave the table
};
/// A wait without an end.
#define FREEHOLD_FOR_EVER UINT64_MAX

/// In a worker program: runs tasks until it is time to end.
/// @param component  called for each task, with the signature of component.h
/// Returns: the exit status, with which the program must end; at once, and not 0, if no pool has started the program.
int freehold_worker_run(int (*component)(const void* input, size_t input_bytes, void* output, size_t capacity,
                                         size_t* output_bytes));

/// Starts a pool.
/// @param options      how it runs its workers
/// @param error        receives the reason if there is no pool; may be NULL
/// @param error_bytes  the size of `error`
/// Returns: the pool, or NULL.
freehold_pool* freehold_pool_open(const freehold_pool_options* options, char* error, size_t error_bytes);
/// Connects to the pool that another process of this user serves by that name: freehold workers --serve NAME. Tasks behave
/// as in an own pool; the figures of the workers are the server's.
/// @param name         of the pool
/// @param error        receives the reason if there is none; may be NULL
/// @param error_bytes  the size of `error`
/// Returns: the pool, or NULL.
freehold_pool* freehold_pool_attach(const char* name, char* error, size_t error_bytes);
/// Ends the pool. Pre: no task of it is left.
/// @param pool  NULL does nothing
void freehold_pool_close(freehold_pool* pool);

/// Submits a task and waits for its output.
/// @param pool          runs it
/// @param input         copied
/// @param input_bytes   its length
/// @param output        receives the output
/// @param capacity      the size of `output`. Of a longer output everything is lost (FREEHOLD_OUTPUT_TOO_SMALL): give
/// max_output
///                      bytes, or submit and get
/// @param output_bytes  receives the length of the output
/// @param detail        receives the detail of a failure; may be NULL
/// Returns: FREEHOLD_OK or the reason.
int freehold_pool_call(freehold_pool* pool, const void* input, size_t input_bytes, void* output, size_t capacity,
                       size_t* output_bytes, int* detail);

/// Submits a task.
/// @param pool         runs it
/// @param input        copied
/// @param input_bytes  its length
/// @param wait_ms      waits for so long while the table is full
/// @param task         receives the task
/// Returns: FREEHOLD_OK, FREEHOLD_FULL, FREEHOLD_TOO_LARGE, FREEHOLD_NO_MEMORY or FREEHOLD_NO_WORKER.
int freehold_pool_submit(freehold_pool* pool, const void* input, size_t input_bytes, uint64_t wait_ms, freehold_task** task);
/// Options of one task. A member that is 0 has the pool's default.
typedef struct freehold_task_options {
  size_t size;              ///< sizeof(freehold_task_options)
  uint64_t wait_ms;         ///< waits for so long while the table is full; 0: not at all
  uint64_t limit_ms;        ///< time limit of one run
  uint64_t within_ms;       ///< time limit from submission to result, over waiting and all attempts
  uint32_t attempts;        ///< runs in all, if workers die
  uint32_t priority;        ///< FREEHOLD_NORMAL, FREEHOLD_HIGH or FREEHOLD_LOW
  const int* retry_codes;   ///< as of the pool; with retry_attempts 0 the pool's retry options hold
  uint32_t retry_attempts;  ///< as of the pool
  uint32_t retry_delay_ms;  ///< as of the pool
} freehold_task_options;
/// Which of two waiting tasks starts first.
enum {
  FREEHOLD_NORMAL = 0,  ///< the default
  FREEHOLD_HIGH = 1,    ///< before all others
  FREEHOLD_LOW = 2      ///< after all others
};
/// Submits a task with options.
/// @param pool         runs it
/// @param input        copied
/// @param input_bytes  its length
/// @param options      of the task; NULL: the pool's, and waits while the table is full
/// @param task         receives the task
/// Returns: FREEHOLD_OK, FREEHOLD_FULL, FREEHOLD_TOO_LARGE, FREEHOLD_NO_MEMORY or FREEHOLD_NO_WORKER.
int freehold_pool_submit_with(freehold_pool* pool, const void* input, size_t input_bytes,
                              const freehold_task_options* options, freehold_task** task);
/// Waits for a task.
/// @param task     the task
/// @param wait_ms  at most so long
/// Returns: 1 if it is over, else 0.
int freehold_task_wait(freehold_task* task, uint64_t wait_ms);
/// Waits for a task and takes its output. The task is gone afterwards, unless the result is FREEHOLD_OUTPUT_TOO_SMALL.
/// @param task          the task
/// @param output        receives the output
/// @param capacity      the size of `output`
/// @param output_bytes  receives the length of the output
/// @param detail        receives the detail of a failure; may be NULL
/// Returns: FREEHOLD_OK or the reason.
int freehold_task_get(freehold_task* task, void* output, size_t capacity, size_t* output_bytes, int* detail);
/// Calls `function` once when the task is over, on a thread of the pool, one function after the other; at the latest when
/// the pool is closed. The task is gone afterwards.
/// @param task      the task
/// @param function  gets the context, FREEHOLD_OK or the reason, its detail, and the output, which is valid until it returns
/// @param context   the first argument of `function`
void freehold_task_then(freehold_task* task,
                        void (*function)(void* context, int result, int detail, const void* output, size_t output_bytes),
                        void* context);
/// Drops a task: a waiting one never starts, and the output of a running one is discarded.
/// @param task  gone afterwards; NULL does nothing
void freehold_task_cancel(freehold_task* task);
/// Drops a task and, if it runs, kills its worker.
/// @param task  gone afterwards; NULL does nothing
void freehold_task_kill(freehold_task* task);

/// Refuses tasks from now on, and waits until the accepted ones are over.
/// @param pool     the pool
/// @param wait_ms  at most so long
/// Returns: 1 if they are over, else 0.
int freehold_pool_drain(freehold_pool* pool, uint64_t wait_ms);
/// The figures of a pool, cut to fit.
/// @param pool    the pool
/// @param format  'j': one JSON object; 'p': Prometheus' text format
/// @param text    receives the figures
/// @param bytes   the size of `text`
/// Returns: the whole length.
size_t freehold_pool_metrics(freehold_pool* pool, char format, char* text, size_t bytes);
/// Why no worker can be started at the moment, cut to fit; empty while all is well.
/// @param pool   the pool
/// @param text   receives the reason
/// @param bytes  the size of `text`
/// Returns: the whole length.
size_t freehold_pool_error(freehold_pool* pool, char* text, size_t bytes);
/// The figures of a pool in one line for people, cut to fit.
/// @param pool   the pool
/// @param text   receives the line
/// @param bytes  the size of `text`
/// Returns: the whole length.
size_t freehold_pool_status(freehold_pool* pool, char* text, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
