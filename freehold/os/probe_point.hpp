// SPDX-License-Identifier: MIT
// Probe points for tracers from outside (USDT). Each is one `nop` in the code, and a note in the file: .note.stapsdt, the
// format of SystemTap, which bpftrace, perf and eBPF programs read. The note says where the point is, what it is called, and
// in which registers its values lie. A tracer that listens puts a breakpoint there; nothing happens otherwise. A function
// with a point that is inlined in several places has as many notes.
#pragma once
#include <cstdint>

namespace freehold::os {

// The points that OpenTelemetry's eBPF profiler asks of allocators, on sampled blocks
// (open-telemetry/opentelemetry-ebpf-profiler, design-docs/00003-memory-profiling).
#define FREEHOLD_PROBE_POINT(name, values, ...)                             \
  asm volatile(                                                             \
      "990: nop\n"                                                          \
      ".pushsection .note.stapsdt,\"\",%%note\n"                            \
      ".balign 4\n"                                                         \
      ".4byte 992f - 991f, 994f - 993f, 3\n"                                \
      "991: .asciz \"stapsdt\"\n"                                           \
      "992: .balign 4\n"                                                    \
      "993: .8byte 990b\n"                                                  \
      ".8byte _.stapsdt.base\n"                                             \
      ".8byte 0\n"                                                          \
      ".asciz \"otel_memory\"\n"                                            \
      ".asciz \"" name                                                      \
      "\"\n"                                                                \
      ".asciz \"" values                                                    \
      "\"\n"                                                                \
      "994: .balign 4\n"                                                    \
      ".popsection\n"                                                       \
      ".ifndef _.stapsdt.base\n"                                            \
      ".pushsection .stapsdt.base,\"aG\",%%progbits,.stapsdt.base,comdat\n" \
      ".weak _.stapsdt.base\n"                                              \
      ".hidden _.stapsdt.base\n"                                            \
      "_.stapsdt.base: .space 1\n"                                          \
      ".size _.stapsdt.base, 1\n"                                           \
      ".popsection\n"                                                       \
      ".endif\n" ::__VA_ARGS__)

// `weighted_bytes`: of all blocks that this one stands for.
inline void probe_sampled_alloc(std::uintptr_t block, std::uint64_t bytes, std::uint64_t weighted_bytes) noexcept {
  FREEHOLD_PROBE_POINT("alloc", "8@%0 8@%1 8@%2", "r"(block), "r"(bytes), "r"(weighted_bytes));
}
inline void probe_sampled_free(std::uintptr_t block) noexcept { FREEHOLD_PROBE_POINT("free", "8@%0", "r"(block)); }

#undef FREEHOLD_PROBE_POINT

}  // namespace freehold::os
