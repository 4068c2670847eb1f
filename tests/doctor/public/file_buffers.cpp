// SPDX-License-Identifier: MIT
// Does: each file is copied through six buffers of 1 MiB that are allocated for it, and freed after it.
// Why:  people measured that faults of the same pages again for each file more than double the time of a backup on some
// hosts.
//       github.com/pgbackrest/pgbackrest/pull/2817, rebuilt from that description alone.
// Case file_buffers: {n} 500
//   Truth: page-faults
//   Right: page-faults
#include "tests/doctor/public/rebuilt.hpp"

int main(int argc, char** argv) {
  rebuilt::in_threads(argc, argv, [](unsigned, long files) {
    for (long file = 0; file < files; ++file) {
      rebuilt::Block buffers[6];
      for (rebuilt::Block& buffer : buffers) buffer = rebuilt::block(1 << 20);
      rebuilt::keep(buffers);
    }
  });
}
