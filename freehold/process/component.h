/* What a component exports to be run by Freehold's worker processes: one C function, bytes in, bytes out.
 *
 * The worker program loads the shared object and calls the function for one task at a time, always from its main thread.
 * The function may crash, leak, hang or exit: that is the worker's end, not the client's. It reads its input where the
 * client has put it and writes its output where the client will read it, so nothing is copied. */
#ifndef FREEHOLD_PROCESS_COMPONENT_H
#define FREEHOLD_PROCESS_COMPONENT_H
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Runs one task. Writes at most `capacity` bytes to `output` and their number to `*output_bytes`, which is 0 before.
 * Returns 0, or a number that the client gets as the reason why the task has failed. A task that failed so is not tried
 * again. The buffers are the function's until it returns. `input` is aligned to 64 bytes, `output` too. */
typedef int freehold_component(const void* input, size_t input_bytes, void* output, size_t capacity, size_t* output_bytes);

/* The name under which a shared object exports it. */
#define FREEHOLD_COMPONENT_NAME "freehold_run"
__attribute__((visibility("default"))) freehold_component freehold_run;

#ifdef __cplusplus
}
#endif
#endif
