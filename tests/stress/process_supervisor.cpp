// SPDX-License-Identifier: MIT
// process_supervisor WORKERS PROGRAM COMPONENT: a supervisor in a separate process, so that it can be killed. The table is
// descriptor 3, the wakeup eventfd 4.
#include <cstdio>
#include <cstdlib>

#include "freehold/process/supervisor/supervisor.hpp"

int main(int argc, char** argv) {
  using namespace freehold::process;
  if (argc != 4) return 2;
  const SharedMemory memory = SharedMemory::attach(kTableDescriptor);
  if (!memory.ok() || !Table::shape_of(memory.data(), memory.bytes())) return 3;
  freehold::ProcessPoolOptions how;
  how.command = {argv[2], argv[3]};
  how.max_workers = static_cast<unsigned>(std::atoi(argv[1]));
  how.max_attempts = TaskWord::kMaxAttempts;
  Supervisor(memory, kWakeupDescriptor, how).run();
  return 0;
}
