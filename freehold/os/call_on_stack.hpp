// SPDX-License-Identifier: MIT
// A call on another stack, for a signal's handler that needs more room than the program's signal stack may have. The
// unwinder finds the caller's frames behind the call, as behind any other.
//
// The system takes a thread to be on its signal stack by the stack pointer alone: the caller blocks the signals whose
// handlers would begin at the top of the signal stack again, over the frames that wait there.
// Threads: any, each on a separate stack. Where the processor is not known, the call is made on the caller's stack.
#pragma once

namespace freehold::os {

// Calls `function` with `argument` on the stack that ends at `end`, which is aligned to 16 bytes. `function` throws nothing.
void call_on_stack(void* end, void (*function)(void*), void* argument) noexcept;

}  // namespace freehold::os
