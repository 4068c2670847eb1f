// SPDX-License-Identifier: MIT
/* Freehold's process pool for C, and for every language that can load a shared library (libfreehold_process.so): runs a
 * component that crashes or does not scale in supervised worker processes. docs/process.md is the guide.
 *
 *   freehold_process_pool_options_t options = {.size = sizeof options, .component = "./slow.so"};
 *   freehold_process_pool_t* pool = freehold_process_pool_create(&options);
 *   int result = freehold_process_pool_call(pool, input, input_bytes, NULL, output, sizeof output, &output_bytes, &detail);
 *   if (result != FREEHOLD_PROCESS_OK) freehold_process_result_text(result, detail, why, sizeof why);
 *   freehold_process_pool_destroy(pool);
 *
 * There is no state outside the handles. Threads: every function may be called from any thread at any time; a handle must
 * not be destroyed while another thread uses it, and a task belongs to one thread at a time. */
#ifndef FREEHOLD_PROCESS_H
#define FREEHOLD_PROCESS_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// A pool of this process, or the connection to one of another process.
typedef struct freehold_process_pool freehold_process_pool_t;
/// A submitted task.
typedef struct freehold_process_task freehold_process_task_t;

/// A limit that is none: of time, of bytes, of a number.
#define FREEHOLD_NO_LIMIT UINT64_MAX

/// How a pool runs its workers. A member that is 0 has its default; a limit may be FREEHOLD_NO_LIMIT.
typedef struct freehold_process_pool_options_t {
  size_t size;                 ///< sizeof(freehold_process_pool_options_t): later versions append members
  const char* component;       ///< a shared object that exports freehold_run (component.h)
  const char* worker_program;  ///< loads the component; default: freehold-worker where it can be found
  uint32_t max_workers;        ///< default: two for each CPU that this process may use
  uint32_t max_open_tasks;     ///< tasks at a time, waiting and running; default: 256
  uint64_t max_input_bytes;    ///< largest input; default: 1 MiB
  uint64_t max_output_bytes;   ///< largest output; default: 1 MiB
  uint32_t max_attempts;       ///< runs of a task whose workers die; default: 3
  uint32_t min_workers;        ///< kept even when there is no work; default: 0
  uint64_t run_timeout_ms;     ///< time limit of one run; default: no limit
  uint64_t idle_timeout_ms;    ///< a worker without a task ends after so long; default: 10 s
  uint64_t load_timeout_ms;    ///< a worker that has not started by then is killed; default: 60 s
  uint64_t max_tasks;          ///< a worker ends after so many tasks; default: no limit
  uint64_t max_rss_bytes;      ///< a worker ends between two tasks when it holds so many bytes; default: no limit
  uint64_t max_age_ms;         ///< a worker ends after so long, between two tasks; default: no limit
  uint64_t kill_rss_bytes;     ///< a worker is killed, even in a task, when it holds so many bytes; default: no limit
  /// Called by the pool's thread with one line for each event of workers and their tasks; default: none.
  void (*log)(void* context, const char* line);
  void* log_context;             ///< the first argument of log
  uint32_t keep_standard_error;  ///< 1: the last lines of a dead worker's standard error follow in the log; default: 0
  uint32_t max_retry_attempts;   ///< runs in all of a task that the component rejects; default: no retry
  /// Instead of a component: a worker program, which calls freehold_process_worker_run(), and its arguments; ends with NULL.
  const char* const* command;
  /// A task runs again if the component returns one of these numbers; up to 4, ends with 0; NULL: for every number.
  const int* retry_codes;
  uint64_t retry_delay_ms;      ///< before the next run
  const char* memory_cgroup;    ///< with kill_rss_bytes: a memory cgroup in which the pool may make one for each worker
  uint32_t no_network;          ///< 1: workers cannot make sockets
  uint32_t only_these_files;    ///< 1: workers open only these files and folders, and the system's libraries
  const char* const* readable;  ///< those files and folders; ends with NULL
  const char* const* writable;  ///< the same, for writing and reading; ends with NULL
  /// Descriptors that a worker has, too, as 5, 6 and so on: at most 5; ends with -1. The pool copies them.
  const int* inherited;
  uint32_t keep_standard_input;  ///< 1: workers read this process's standard input; default: they see its end at once
} freehold_process_pool_options_t;

/// How a task ended, or why it could not begin.
enum freehold_process_result {
  FREEHOLD_PROCESS_OK = 0,                 ///< it has output
  FREEHOLD_PROCESS_SIGNAL = 1,             ///< its worker was killed; detail: the signal
  FREEHOLD_PROCESS_EXIT = 2,               ///< its worker exited; detail: the status
  FREEHOLD_PROCESS_DEADLINE = 3,           ///< it ran beyond its time limit; detail: the limit in milliseconds
  FREEHOLD_PROCESS_MEMORY = 4,             ///< its worker held more memory than allowed; detail: the limit in MiB
  FREEHOLD_PROCESS_COMPONENT = 5,          ///< the component rejected it; detail: the number that the component returned
  FREEHOLD_PROCESS_NO_WORKER = 6,          ///< no worker can be started, or the pool takes no more tasks
  FREEHOLD_PROCESS_CORRUPT = 7,            ///< a component has written into the pool's memory, and the task is lost
  FREEHOLD_PROCESS_FULL = 32,              ///< the table stayed full for as long as the caller would wait
  FREEHOLD_PROCESS_TOO_LARGE = 33,         ///< the input is longer than max_input_bytes
  FREEHOLD_PROCESS_OUTPUT_TOO_SMALL = 34,  ///< the caller's buffer is; *output_bytes is the length that is needed
  FREEHOLD_PROCESS_NO_MEMORY = 35,   ///< less memory is left than the input needs, or a result that must leave the table
  FREEHOLD_PROCESS_BAD_OPTIONS = 36  ///< the options of the task are not known to this version
};

/// In a worker program: runs tasks until it is time to end.
/// @param component  called for each task, with the signature of component.h
/// @return the exit status, with which the program must end; at once, and not 0, if no pool has started the program.
int freehold_process_worker_run(int (*component)(const void* input, size_t input_bytes, void* output, size_t capacity,
                                                 size_t* output_bytes));

/// Starts a pool.
/// @param options  how it runs its workers
/// @return the pool, also if it cannot run tasks: freehold_process_pool_error() says why. NULL and errno EINVAL for options
/// that this version does not know, ENOMEM.
freehold_process_pool_t* freehold_process_pool_create(const freehold_process_pool_options_t* options);
/// Connects to the pool that another process of this user serves by that name: freehold workers --serve NAME. Tasks behave
/// as in an own pool; the figures of the workers are the server's.
/// @param name  of the pool
/// @return as freehold_process_pool_create.
freehold_process_pool_t* freehold_process_pool_attach(const char* name);
/// Waits until a worker has answered, which it starts if none was started yet, or until it is known that none can.
/// @param pool  the pool; NULL is not ok
/// @return 1 if workers can be started, else 0.
int freehold_process_pool_ok(freehold_process_pool_t* pool);
/// Why no task can run at the moment, cut to fit; empty while nothing is known against it. Does not wait.
/// @param pool   the pool; NULL: what errno says
/// @param text   receives the reason
/// @param bytes  the size of `text`
/// @return the whole length.
size_t freehold_process_pool_error(freehold_process_pool_t* pool, char* text, size_t bytes);
/// Tells in words how a task ended, cut to fit: "its worker was killed by signal 6".
/// @param result  FREEHOLD_PROCESS_OK or the reason
/// @param detail  the detail of the reason
/// @param text    receives the words
/// @param bytes   the size of `text`
/// @return the whole length.
size_t freehold_process_result_text(int result, int detail, char* text, size_t bytes);
/// Ends the pool. Pre: no task of it is left.
/// @param pool  NULL does nothing
void freehold_process_pool_destroy(freehold_process_pool_t* pool);

/// Options of one task. A member that is 0 has the pool's default; a limit may be FREEHOLD_NO_LIMIT.
typedef struct freehold_process_task_options_t {
  size_t size;                  ///< sizeof(freehold_process_task_options_t): later versions append members
  uint64_t submit_timeout_ms;   ///< waits for so long while the table is full; here 0 is zero: it does not wait
  uint64_t run_timeout_ms;      ///< time limit of one run
  uint64_t total_timeout_ms;    ///< time limit from submission to result, over waiting and all attempts
  uint32_t max_attempts;        ///< runs in all, if workers die
  uint32_t priority;            ///< one of freehold_process_priority
  const int* retry_codes;       ///< as of the pool; with max_retry_attempts 0 the pool's retry options hold
  uint64_t retry_delay_ms;      ///< as of the pool
  uint32_t max_retry_attempts;  ///< as of the pool
} freehold_process_task_options_t;
/// Which of two waiting tasks starts first.
enum freehold_process_priority {
  FREEHOLD_PROCESS_PRIORITY_NORMAL = 0,  ///< the default
  FREEHOLD_PROCESS_PRIORITY_HIGH = 1,    ///< before all others
  FREEHOLD_PROCESS_PRIORITY_LOW = 2      ///< after all others
};

/// Submits a task and waits for its output.
/// @param pool          runs it
/// @param input         copied
/// @param input_bytes   its length
/// @param options       of the task; NULL: the pool's, and waits while the table is full
/// @param output        receives the output
/// @param capacity      the size of `output`; a longer output is lost: give max_output_bytes, or submit and get
/// @param output_bytes  receives the length of the output
/// @param detail        receives the detail of a failure; may be NULL
/// @return FREEHOLD_PROCESS_OK or the reason.
int freehold_process_pool_call(freehold_process_pool_t* pool, const void* input, size_t input_bytes,
                               const freehold_process_task_options_t* options, void* output, size_t capacity,
                               size_t* output_bytes, int* detail);
/// Submits a task.
/// @param pool         runs it
/// @param input        copied
/// @param input_bytes  its length
/// @param options      of the task; NULL: the pool's, and waits while the table is full
/// @param task         receives the task
/// @return FREEHOLD_PROCESS_OK, or why there is no task: FREEHOLD_PROCESS_NO_WORKER, or one from FREEHOLD_PROCESS_FULL on.
int freehold_process_pool_submit(freehold_process_pool_t* pool, const void* input, size_t input_bytes,
                                 const freehold_process_task_options_t* options, freehold_process_task_t** task);
/// Waits for a task.
/// @param task        the task
/// @param timeout_ms  at most so long; FREEHOLD_NO_LIMIT: without an end
/// @return 1 if it is over, else 0.
int freehold_process_task_wait(freehold_process_task_t* task, uint64_t timeout_ms);
/// Waits for a task and takes its output. The task is gone then, except after FREEHOLD_PROCESS_OUTPUT_TOO_SMALL.
/// @param task          the task
/// @param output        receives the output
/// @param capacity      the size of `output`
/// @param output_bytes  receives the length of the output
/// @param detail        receives the detail of a failure; may be NULL
/// @return FREEHOLD_PROCESS_OK or the reason.
int freehold_process_task_get(freehold_process_task_t* task, void* output, size_t capacity, size_t* output_bytes,
                              int* detail);
/// Calls `function` once when the task is over, on a thread of the pool, one function after the other; at the latest when
/// the pool ends. The task is gone afterwards.
/// @param task      the task
/// @param function  gets the context, FREEHOLD_PROCESS_OK or the reason, its detail, and the output, valid until it returns
/// @param context   the first argument of `function`
void freehold_process_task_then(freehold_process_task_t* task,
                                void (*function)(void* context, int result, int detail, const void* output,
                                                 size_t output_bytes),
                                void* context);
/// Drops a task: a waiting one never starts, and the output of a running one is discarded.
/// @param task  gone afterwards; NULL does nothing
void freehold_process_task_cancel(freehold_process_task_t* task);
/// Drops a task and, if it runs, kills its worker.
/// @param task  gone afterwards; NULL does nothing
void freehold_process_task_kill(freehold_process_task_t* task);

/// Refuses tasks from now on, and waits until the accepted ones are over.
/// @param pool        the pool
/// @param timeout_ms  at most so long; FREEHOLD_NO_LIMIT: without an end
/// @return 1 if they are over, else 0.
int freehold_process_pool_drain(freehold_process_pool_t* pool, uint64_t timeout_ms);
/// How freehold_process_pool_stats writes the figures.
enum freehold_process_stats_format {
  FREEHOLD_PROCESS_STATS_TEXT = 0,       ///< one line for people
  FREEHOLD_PROCESS_STATS_JSON = 1,       ///< one JSON object
  FREEHOLD_PROCESS_STATS_PROMETHEUS = 2  ///< Prometheus' text format
};
/// The figures of a pool, cut to fit.
/// @param pool    the pool
/// @param format  one of freehold_process_stats_format
/// @param text    receives the figures
/// @param bytes   the size of `text`
/// @return the whole length.
size_t freehold_process_pool_stats(freehold_process_pool_t* pool, int format, char* text, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
