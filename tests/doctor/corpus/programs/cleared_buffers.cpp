// SPDX-License-Identifier: MIT
// Many buffers are loaded once, and then cleared; each keeps its capacity.
// People looked for a leak and found that clear() of a vector gives nothing back: the buffers are live blocks.
#include "tests/doctor/corpus/programs/rebuilt.hpp"

int main(int, char** argv) {
  std::vector<std::vector<char>> buffers(static_cast<std::size_t>(std::atoi(argv[1])));
  for (auto& buffer : buffers) buffer.resize(1 << 20, 'x');
  for (auto& buffer : buffers) buffer.clear();
  rebuilt::idle(600);
  rebuilt::keep(buffers);
}
