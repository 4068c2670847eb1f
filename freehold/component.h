// SPDX-License-Identifier: MIT
/* The interface of a component that Freehold's worker processes run: one C function, bytes in, bytes out.
 *
 *   int freehold_run(const void* input, size_t input_bytes, void* output, size_t capacity, size_t* output_bytes) {
 *     ...
 *     return 0;
 *   }
 *
 * The worker program loads the shared object and calls the function for one task at a time, always from its main thread. The
 * function may crash, leak, hang or exit: that ends the worker, not the client. It reads the input where the client has put
 * it and writes the output where the client will read it, so nothing is copied. */
#ifndef FREEHOLD_COMPONENT_H
#define FREEHOLD_COMPONENT_H
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Runs one task. The buffers belong to the function until it returns.
/// @param input         the task, aligned to 64 bytes
/// @param input_bytes   its length
/// @param output        room for the output, aligned to 64 bytes
/// @param capacity      the most bytes that may be written there
/// @param output_bytes  receives the length of the output; 0 before
/// @return 0, or a number that the client gets as the reason why the task has failed. Such a task runs again only if its
/// retry options say so.
typedef int freehold_component(const void* input, size_t input_bytes, void* output, size_t capacity, size_t* output_bytes);

/// The name under which a shared object exports the function.
#define FREEHOLD_COMPONENT_NAME "freehold_run"
/// The component's function: declared here, defined by the shared object.
/// @param input         the task
/// @param input_bytes   its length
/// @param output        room for the output
/// @param capacity      the most bytes that may be written there
/// @param output_bytes  receives the length of the output
/// @return as freehold_component.
__attribute__((visibility("default"))) int freehold_run(const void* input, size_t input_bytes, void* output, size_t capacity,
                                                        size_t* output_bytes);

#ifdef __cplusplus
}
#endif
#endif
