// SPDX-License-Identifier: MIT
// The sampled heap profile of the process (freehold/profile), switched at run time; FREEHOLD_PROFILE switches it on at the
// start. Any thread, not in signal handlers.
#pragma once
#include <cstddef>
#include <cstdint>

namespace freehold::alloc {

inline constexpr std::size_t kMostPathBytes = 512;  // longest FREEHOLD_PROFILE_FILE, its end included

// From now on one byte in `mean` is sampled; 0: the default. False: no memory (ENOMEM), or the process is in checked mode
// (ENOTSUP).
[[nodiscard]] bool start_profile(std::uint64_t mean) noexcept;
// No further block is sampled.
void stop_profile() noexcept;
// Writes the profile to a file; "%p" in its name becomes the process's number. False: errno says why (EINVAL: never
// started).
[[nodiscard]] bool write_profile(const char* path) noexcept;

}  // namespace freehold::alloc
