// SPDX-License-Identifier: MIT
// oneTBB finds out here how the compiler is; the tests that run here do not ask.
