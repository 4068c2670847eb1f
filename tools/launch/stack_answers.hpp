// SPDX-License-Identifier: MIT
// Answers the program's questions for the lines of its call stacks (freehold/check/report.hpp, StackRequest): what checked
// mode reports then has functions and lines, as a heap profile has. The names are found here, since the program may have
// crashed; it writes them itself. A program whose memory map this user may not read gets no answer, and writes addresses.
#pragma once
#include "tools/support/file_descriptor.hpp"

namespace freehold::inline tools {

struct StackSocket {
  FileDescriptor command, program;
};
// Both are closed on exec. Without descriptors if there are none left: reports have addresses then.
[[nodiscard]] StackSocket stack_socket();
// Answers until this process ends, in a thread.
void answer_stacks(FileDescriptor command);

}  // namespace freehold::inline tools
